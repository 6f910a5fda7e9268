//! The flag that stops a step before its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that any thread may raise, once, and that every worker checks.
#[derive(Clone, Debug, Default)]
pub struct AbortFlag {
    raised: Arc<AtomicBool>,
}

impl AbortFlag {
    /// A flag that is not raised.
    pub fn new() -> AbortFlag {
        AbortFlag::default()
    }

    /// Raises the flag; it stays raised. Safe in a signal handler.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Relaxed);
    }

    /// Whether the flag has been raised.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }
}

impl From<Arc<AtomicBool>> for AbortFlag {
    /// Shares a flag that something else raises, such as a signal handler.
    fn from(raised: Arc<AtomicBool>) -> AbortFlag {
        AbortFlag { raised }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_one_flag() {
        let flag = AbortFlag::new();
        let other = flag.clone();
        assert!(!other.is_raised());
        flag.raise();
        assert!(other.is_raised());
    }
}
