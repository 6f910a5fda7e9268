//! `cpu`: looks for prime numbers by trial division, which measures the division of whole numbers.

use std::hint::black_box;

use dyno_units::RandomStream;

use super::{Client, Spec, Stretch, Test};

pub(super) const SPEC: Spec = Spec {
    name: "cpu",
    options: "\
\x20 --cpu-max-prime=N upper limit for primes generator [10000]
",
    make: |options| {
        let limit = options.number("cpu_max_prime");
        if limit < 1.0 {
            return Err(format!("Invalid value of cpu-max-prime: {limit}."));
        }
        Ok(Box::new(Cpu { limit: limit as u64 }))
    },
    commands: &[],
};

struct Cpu {
    limit: u64,
}

/// Prime numbers from 3 to below a limit, each candidate divided by all numbers up to its square root until
/// one divides it.
fn primes(limit: u64) -> u64 {
    let mut found = 0;
    for candidate in 3..black_box(limit) {
        let root = (candidate as f64).sqrt();
        let mut divisor = 2_u64;
        while divisor as f64 <= root && !candidate.is_multiple_of(divisor) {
            divisor += 1;
        }
        found += u64::from(divisor as f64 > root);
    }
    found
}

impl Test for Cpu {
    fn mode(&self) -> String {
        format!("Prime numbers limit: {}\n\n", self.limit)
    }

    fn client(&self, _tid: usize, _random: RandomStream) -> Client<'_> {
        Box::new(|_| {
            black_box(primes(self.limit));
            Ok(true)
        })
    }

    fn summary(&self, stretch: &Stretch) -> String {
        let rate = stretch.per_second(stretch.done.events);
        format!("CPU speed:\n    events per second: {rate:8.2}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::primes;

    #[test]
    fn primes_are_counted_from_3_to_below_the_limit() {
        let check = |limit: u64, expected: u64| assert_eq!(primes(limit), expected, "{limit}");
        check(3, 0);
        check(4, 1);
        // 3, 5 and 7; 9 is none.
        check(10, 3);
        check(10_000, 1_228);
    }
}
