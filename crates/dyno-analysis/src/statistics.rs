//! Resampling, quantiles and tests.
