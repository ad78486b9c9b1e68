# How every target of Folio is built: one library a folder, one test program a
# folder of tests, all with the same strict flags.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# False where targets that need gRPC or oneTBB are left out.
set(FOLIO_THREADED_LIBRARIES ON)
add_library(folio_flags INTERFACE)
target_compile_options(folio_flags INTERFACE
  -Wall -Wextra -Wpedantic -Werror -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough
  # Designated initialisers leave members at their defaults on purpose.
  -Wno-missing-field-initializers
  # A contraction of a*b+c that the compiler may or may not do would make
  # results differ between copies of the same code.
  -ffp-contract=off)
target_include_directories(folio_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_link_libraries(folio_flags INTERFACE Threads::Threads)

# (-Wno-maybe-uninitialized: g++ 12 takes moved variants, and the states of
# std::regex, for uninitialised when it instruments them.)
if(FOLIO_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1
    -Wno-maybe-uninitialized)
  add_link_options(-fsanitize=address,undefined)
elseif(FOLIO_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -g1 -Wno-maybe-uninitialized)
  add_link_options(-fsanitize=thread)
  set(FOLIO_THREADED_LIBRARIES OFF)
elseif(FOLIO_SANITIZE STREQUAL "fuzzer")  # Clang's.
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=address,undefined)
  set(FOLIO_THREADED_LIBRARIES OFF)
elseif(FOLIO_SANITIZE)
  message(FATAL_ERROR "FOLIO_SANITIZE is '${FOLIO_SANITIZE}'; use 'address', 'thread' or 'fuzzer', or leave it empty.")
endif()

# folio_library(NAME SOURCES file... [DEPENDS target...])
function(folio_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  add_library(${name} STATIC ${arg_SOURCES})
  # Whoever uses an installed library has flags of their own.
  target_link_libraries(${name} PUBLIC $<BUILD_INTERFACE:folio_flags> ${arg_DEPENDS})
endfunction()

# folio_test(NAME SOURCES file... [DEPENDS target...] [TIMEOUT seconds])
# One GoogleTest program; ctest sees each of its tests. FOLIO_SHARED_DIR is
# where reference data may lie; tests that use it skip when it is not there.
function(folio_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;DEPENDS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_compile_definitions(${name} PRIVATE
    FOLIO_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    FOLIO_SHARED_DIR="${CMAKE_SOURCE_DIR}/../shared")
  target_link_libraries(${name} PRIVATE folio_flags ${arg_DEPENDS} GTest::gmock_main)
  set(properties TIMEOUT ${arg_TIMEOUT})
  if(FOLIO_SANITIZE STREQUAL "thread")
    list(APPEND properties ENVIRONMENT
      TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/support/tsan.suppressions)
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()
