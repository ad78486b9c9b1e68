# What `cmake --install` puts into a prefix: the program, and the engine as the
# package Folio, whose target is Folio::folio. An engine needs no gRPC.

include(CMakePackageConfigHelpers)

# Everything that folio_engine stands on; CMake refuses to export a part of it.
set(libraries
  folio_base folio_cache folio_engine folio_kernels folio_model folio_model_config
  folio_scheduler folio_tokenizer folio_weights)
add_library(folio_embedded INTERFACE)
add_library(Folio::folio ALIAS folio_embedded)
set_target_properties(folio_embedded PROPERTIES EXPORT_NAME folio)
target_compile_features(folio_embedded INTERFACE cxx_std_20)
target_include_directories(folio_embedded INTERFACE $<INSTALL_INTERFACE:include/folio>)
target_link_libraries(folio_embedded INTERFACE folio_engine Threads::Threads)

install(TARGETS folio folio-load)
install(TARGETS folio_embedded ${libraries} EXPORT FolioTargets)
install(EXPORT FolioTargets NAMESPACE Folio:: DESTINATION lib/cmake/Folio)
install(FILES runtime/folio.h DESTINATION include/folio/runtime)
foreach(library IN LISTS libraries)
  get_target_property(folder ${library} SOURCE_DIR)
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${folder})
  install(DIRECTORY ${folder}/ DESTINATION include/folio/${folder}
    FILES_MATCHING PATTERN *.h PATTERN folio_tiny EXCLUDE)
endforeach()

# Before 1.0 a minor version may change anything.
write_basic_package_version_file(FolioConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_SOURCE_DIR}/.cmake/FolioConfig.cmake ${CMAKE_BINARY_DIR}/FolioConfigVersion.cmake
  DESTINATION lib/cmake/Folio)
