//! The seconds in which an offered rate was kept, judged in windows that hold many statements of
//! each client: of two statements a second, one may lie beyond a second's edge.

const STATEMENTS_LEAST: f64 = 20.0;

/// Share of the rate that has to be done.
pub const KEPT: f64 = 0.95;

#[derive(Clone, Copy, Debug)]
pub struct Offered {
    /// Per second, of all clients.
    pub statements: f64,
    pub clients: f64,
}

impl Offered {
    pub fn window_s(self) -> usize {
        let each = self.statements / self.clients.max(1.0);
        if each > 0.0 { (STATEMENTS_LEAST / each).ceil().clamp(1.0, 1e6) as usize } else { 1 }
    }

    /// For each second, whether its window kept the rate, less one statement of each client at an
    /// edge. The last window includes the remaining seconds; empty without a whole window.
    pub fn kept(self, seconds: &[f64]) -> Vec<bool> {
        let length = self.window_s();
        let n_windows = seconds.len() / length;
        let of_window = |window: usize| {
            let end = if window + 1 == n_windows { seconds.len() } else { (window + 1) * length };
            let own = &seconds[window * length..end];
            let done: f64 = own.iter().sum();
            let wanted = KEPT * self.statements * own.len() as f64 - self.clients;
            // Counts are whole, so this is rounding.
            std::iter::repeat_n(done >= wanted - 1e-6, own.len())
        };
        (0..n_windows).flat_map(of_window).collect()
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct KeptSeconds {
    all: u32,
    kept: u32,
    /// Most seconds in a row in which it was not kept.
    pub longest_miss_s: u32,
}

impl KeptSeconds {
    pub fn add(&mut self, offered: Offered, seconds: &[f64]) {
        let mut missing = 0;
        for is_kept in offered.kept(seconds) {
            (self.all, self.kept) = (self.all + 1, self.kept + u32::from(is_kept));
            missing = if is_kept { 0 } else { missing + 1 };
            self.longest_miss_s = self.longest_miss_s.max(missing);
        }
    }

    /// `None` without seconds.
    pub fn share(self) -> Option<f64> {
        (self.all > 0).then(|| f64::from(self.kept) / f64::from(self.all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check((statements, clients): (f64, f64), seconds: &[f64], expected: (usize, f64, u32)) {
        let offered = Offered { statements, clients };
        let mut kept = KeptSeconds::default();
        kept.add(offered, seconds);
        let found = (offered.window_s(), kept.share().unwrap_or(-1.0), kept.longest_miss_s);
        assert_eq!(found, expected);
    }

    #[test]
    fn half_of_a_low_rate_is_not_the_rate() {
        // The Insert Benchmark's default: 100 rows a second, 50 a statement; one client and four.
        check((2.0, 1.0), &[1.0; 30], (10, 0.0, 30));
        check((8.0, 4.0), &[4.0; 30], (10, 0.0, 30));
        check((8.0, 4.0), &[6.0; 30], (10, 0.0, 30));
        check((2.0, 1.0), &[2.0; 30], (10, 1.0, 0));
        // Slightly late or early statements count.
        check((2.0, 1.0), &[1.0, 3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 2.0], (10, 1.0, 0));
        // A window of one second suffices here.
        check((100.0, 2.0), &[100.0, 92.0, 50.0, 110.0], (1, 0.5, 2));
        // The last window has the rest.
        check((2.0, 1.0), &[2.0; 19], (10, 1.0, 0));
        let late: Vec<f64> = (0..25).map(|s| if s < 10 { 2.0 } else { 0.0 }).collect();
        check((2.0, 1.0), &late, (10, 10.0 / 25.0, 15));
        // Less than a window.
        check((2.0, 1.0), &[2.0; 9], (10, -1.0, 0));
        check((0.0, 0.0), &[], (1, -1.0, 0));
    }
}
