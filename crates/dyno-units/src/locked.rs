//! Locks whose values stay whole when a thread that holds them panics.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
