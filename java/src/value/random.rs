//! The value of a `Random`: the generator that Java prescribes.

const MASK: u64 = (1 << 48) - 1;

const MULTIPLIER: u64 = 0x5_deec_e66d;

/// 2⁻⁵³
const UNIT: f64 = 1.110_223_024_625_156_5e-16;

/// The linear congruential generator that Java's documentation prescribes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random {
    state: u64,
    /// The second one of a pair of normally distributed numbers.
    gaussian: Option<f64>,
}

impl Random {
    /// A number from 0 to below 1, of 53 bits.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub(crate) fn unit(bits: u64) -> f64 {
        bits as f64 * UNIT
    }

    pub(crate) fn seeded(seed: i64) -> Self {
        Self {
            state: (seed.cast_unsigned() ^ MULTIPLIER) & MASK,
            gaussian: None,
        }
    }

    pub(crate) fn next(&mut self, bits: u32) -> i32 {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(0xb) & MASK;
        u32::try_from(self.state >> (48 - bits)).unwrap_or(0).cast_signed()
    }

    pub(crate) fn int(&mut self) -> i32 {
        self.next(32)
    }

    pub(crate) fn below(&mut self, bound: i32) -> i32 {
        if bound & bound.wrapping_sub(1) == 0 {
            let scaled = i64::from(bound).wrapping_mul(i64::from(self.next(31))) >> 31;
            return i32::try_from(scaled).unwrap_or(0);
        }
        loop {
            let bits = self.next(31);
            let value = bits % bound;
            // An overflow marks the last, incomplete run of remainders.
            if bits.wrapping_sub(value).wrapping_add(bound - 1) >= 0 {
                return value;
            }
        }
    }

    pub(crate) fn between(&mut self, origin: i32, bound: i32) -> i32 {
        let mut drawn = self.int();
        let width = bound.wrapping_sub(origin);
        let last = width.wrapping_sub(1);
        if width & last == 0 {
            return (drawn & last).wrapping_add(origin);
        }
        if width > 0 {
            loop {
                let half = (drawn.cast_unsigned() >> 1).cast_signed();
                let rest = half % width;
                if half.wrapping_add(last).wrapping_sub(rest) >= 0 {
                    return rest.wrapping_add(origin);
                }
                drawn = self.int();
            }
        }
        while drawn < origin || drawn >= bound {
            drawn = self.int();
        }
        drawn
    }

    pub(crate) fn long(&mut self) -> i64 {
        let (high, low) = (self.next(32), self.next(32));
        (i64::from(high) << 32).wrapping_add(i64::from(low))
    }

    pub(crate) fn long_between(&mut self, origin: i64, bound: i64) -> i64 {
        let mut drawn = self.long();
        let width = bound.wrapping_sub(origin);
        let last = width.wrapping_sub(1);
        if width & last == 0 {
            return (drawn & last).wrapping_add(origin);
        }
        if width > 0 {
            loop {
                let half = (drawn.cast_unsigned() >> 1).cast_signed();
                let rest = half % width;
                if half.wrapping_add(last).wrapping_sub(rest) >= 0 {
                    return rest.wrapping_add(origin);
                }
                drawn = self.long();
            }
        }
        while drawn < origin || drawn >= bound {
            drawn = self.long();
        }
        drawn
    }

    pub(crate) fn double(&mut self) -> f64 {
        let bits = (i64::from(self.next(26)) << 27) + i64::from(self.next(27));
        Self::unit(bits.cast_unsigned())
    }

    pub(crate) fn float(&mut self) -> f32 {
        fraction(self.next(24))
    }

    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(kept) = self.gaussian.take() {
            return kept;
        }
        loop {
            let (x, y) = (2.0 * self.double() - 1.0, 2.0 * self.double() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 && square != 0.0 {
                let factor = (-2.0 * strict_log(square) / square).sqrt();
                self.gaussian = Some(y * factor);
                return x * factor;
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "24 bits are exact")]
fn fraction(bits: i32) -> f32 {
    bits as f32 / 16_777_216.0
}

/// `StrictMath.log` of a positive number: fdlibm's algorithm, whose last bit `Random.nextGaussian` shows.
fn strict_log(value: f64) -> f64 {
    const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    const TERMS: [f64; 7] = [
        0.666_666_666_666_673_5,
        0.399_999_999_994_094_2,
        0.285_714_287_436_623_9,
        0.222_221_984_321_497_84,
        0.181_835_721_616_180_5,
        0.153_138_376_992_093_73,
        0.147_981_986_051_165_86,
    ];
    let (mut bits, mut exponent) = (value.to_bits(), 0_i32);
    if bits >> 52 == 0 {
        bits = (value * 18_014_398_509_481_984.0).to_bits();
        exponent -= 54;
    }
    let high = i32::try_from(bits >> 32).unwrap_or(0);
    exponent += (high >> 20) - 1023;
    let fraction = high & 0x000f_ffff;
    let carry = (fraction + 0x9_5f64) & 0x10_0000;
    exponent += carry >> 20;
    // The number scaled to between the roots of one half and of two.
    let scaled_high = u64::from((fraction | (carry ^ 0x3ff0_0000)).cast_unsigned());
    let f = f64::from_bits(scaled_high << 32 | (bits & 0xffff_ffff)) - 1.0;
    let k = f64::from(exponent);
    if (0x000f_ffff & (2 + fraction)) < 3 {
        if f == 0.0 {
            return if exponent == 0 { 0.0 } else { k * LN2_HIGH + k * LN2_LOW };
        }
        let rest = f * f * (0.5 - 0.333_333_333_333_333_3 * f);
        return if exponent == 0 {
            f - rest
        } else {
            k * LN2_HIGH - ((rest - k * LN2_LOW) - f)
        };
    }
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let [one, two, three, four, five, six, seven] = TERMS;
    let even = w * (two + w * (four + w * six));
    let odd = z * (one + w * (three + w * (five + w * seven)));
    let rest = odd + even;
    if (fraction - 0x6_147a) | (0x6_b851 - fraction) > 0 {
        let half = 0.5 * f * f;
        if exponent == 0 {
            f - (half - s * (half + rest))
        } else {
            k * LN2_HIGH - ((half - (s * (half + rest) + k * LN2_LOW)) - f)
        }
    } else if exponent == 0 {
        f - s * (f - rest)
    } else {
        k * LN2_HIGH - ((s * (f - rest) - k * LN2_LOW) - f)
    }
}
