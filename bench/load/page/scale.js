// Values to pixels, and back.

// The least of 1, 2 and 5, times a power of ten, that is not below `value` > 0.
function niceStep(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 5, 10].find((f) => f * power >= value * (1 - 1e-9));
  return factor * power;
}

// The first index whose value is above `value`, in ascending `values`.
function upperBound(values, value) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

class Scale {
  // A logarithmic one shows what is below the domain, as zero is, at its edge.
  constructor({domain, range, log = false}) {
    Object.assign(this, {domain, range, log});
    const ends = domain.map((value) => this.bend(value));
    this.factor = (range[1] - range[0]) / (ends[1] - ends[0] || 1);
    this.origin = range[0] - ends[0] * this.factor;
  }

  bend(value) {
    return this.log ? Math.log(Math.max(value, this.domain[0])) : value;
  }

  map(value) {
    return this.origin + this.bend(value) * this.factor;
  }

  invert(pixel) {
    const bent = (pixel - this.origin) / this.factor;
    return this.log ? Math.exp(bent) : bent;
  }

  // About `wanted` round values of the domain.
  ticks(wanted) {
    return this.log ? this.logTicks(wanted) : this.linearTicks(wanted);
  }

  linearTicks(wanted) {
    const [low, high] = this.domain;
    const step = niceStep((high - low) / wanted);
    const values = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) {
      values.push(Number((i * step).toPrecision(12)));
    }
    return values;
  }

  logTicks(wanted) {
    const [low, high] = this.domain;
    const decades = Math.log10(high / low);
    const factors = decades * 3 <= wanted * 1.5 ? [1, 2, 5] : [1];
    const every = Math.max(1, Math.ceil(decades / wanted));
    const values = [];
    const last = Math.ceil(Math.log10(high));
    for (let power = Math.floor(Math.log10(low)); power <= last; power += every) {
      for (const factor of factors) {
        const value = Number((factor * 10 ** power).toPrecision(12));
        if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) values.push(value);
      }
    }
    return values;
  }
}

// A round domain that holds [low, high]; a logarithmic one needs low > 0.
function niceDomain([low, high], log) {
  if (!(high > low)) high = low + (Math.abs(low) || 1);
  if (!log) {
    const step = niceStep((high - low) / 5);
    return [Math.floor(low / step) * step, Math.ceil(high / step - 1e-9) * step];
  }
  return [1 / niceStep(1 / low), niceStep(high)];
}
