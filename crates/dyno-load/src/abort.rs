//! The flag that stops a step before its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Any thread may raise it, once; every worker checks it.
#[derive(Clone, Debug, Default)]
pub struct AbortFlag {
    raised: Arc<AtomicBool>,
    parent: Option<Arc<AtomicBool>>,
}

impl AbortFlag {
    pub fn new() -> AbortFlag {
        AbortFlag::default()
    }

    /// A flag that is also raised with this one.
    pub fn child(&self) -> AbortFlag {
        AbortFlag { raised: Arc::default(), parent: Some(Arc::clone(&self.raised)) }
    }

    /// Safe in a signal handler; the flag stays raised.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
            || self.parent.as_ref().is_some_and(|parent| parent.load(Ordering::Relaxed))
    }
}

impl From<Arc<AtomicBool>> for AbortFlag {
    fn from(raised: Arc<AtomicBool>) -> AbortFlag {
        AbortFlag { raised, parent: None }
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

    #[test]
    fn a_child_is_raised_alone_or_with_its_parent() {
        let (flag, lone) = (AbortFlag::new(), AbortFlag::new());
        let (child, other) = (flag.child(), lone.child());
        other.raise();
        assert!(other.is_raised() && !lone.is_raised() && !child.is_raised());
        flag.raise();
        assert!(child.is_raised());
    }
}
