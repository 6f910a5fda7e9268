//! Keys drawn by clients, for the audit.

use std::sync::Arc;

use crate::AuditRow;
use crate::skew::{DrawnByClient, DrawnKeys, KeyBins};

use super::settings::{Settings, TELLERS};
use super::transactions::Script;

/// What one client draws, counted from 0: accounts, tellers, branches.
pub(super) type Drawing = [DrawnByClient; 3];

#[derive(Debug)]
pub(super) struct Counts([Arc<DrawnKeys>; 3]);

impl Counts {
    /// For accounts with this distribution, and tellers and branches that are all equally likely.
    pub(super) fn new(settings: &Settings) -> Counts {
        let even = |n_keys| DrawnKeys::new(KeyBins::even(n_keys));
        let scale = settings.scale;
        Counts([settings.accounts.counted(), even(scale * TELLERS), even(scale)])
    }

    pub(super) fn client(&self) -> Drawing {
        self.0.each_ref().map(DrawnKeys::client)
    }

    /// Checks that keys were drawn from the intended distribution.
    pub(super) fn audit_rows(&self, script: Script) -> Vec<AuditRow> {
        let names = ["skew of accounts", "skew of tellers", "skew of branches"];
        let n_drawn = if script.has_begin() { names.len() } else { 1 };
        self.0.iter().zip(names).take(n_drawn).map(|(drawn, name)| drawn.audit_row(name)).collect()
    }
}
