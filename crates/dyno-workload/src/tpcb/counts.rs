//! The keys that clients draw, for the audit.

use std::sync::Arc;

use crate::AuditRow;
use crate::skew::{DrawnByClient, DrawnKeys, KeyBins};

use super::settings::{Settings, TELLERS};
use super::transactions::Script;

#[derive(Debug)]
pub(super) struct Counts {
    accounts: Arc<DrawnKeys>,
    tellers: Arc<DrawnKeys>,
    branches: Arc<DrawnKeys>,
}

/// What one client draws; keys are counted from 0.
pub(super) struct Drawing {
    pub(super) accounts: DrawnByClient,
    pub(super) tellers: DrawnByClient,
    pub(super) branches: DrawnByClient,
}

impl Counts {
    /// For accounts with this distribution, and tellers and branches that are all equally likely.
    pub(super) fn new(settings: &Settings) -> Counts {
        let Settings { scale, ref accounts, .. } = *settings;
        let n_accounts = accounts.n_items();
        let bins = KeyBins::of_neighbours(n_accounts, |key| accounts.share_before(key));
        Counts {
            accounts: DrawnKeys::new(bins),
            tellers: DrawnKeys::new(KeyBins::even(scale * TELLERS)),
            branches: DrawnKeys::new(KeyBins::even(scale)),
        }
    }

    pub(super) fn client(&self) -> Drawing {
        Drawing {
            accounts: self.accounts.client(),
            tellers: self.tellers.client(),
            branches: self.branches.client(),
        }
    }

    /// Checks that keys were drawn from the intended distribution.
    pub(super) fn audit_rows(&self, script: Script) -> Vec<AuditRow> {
        let mut rows = vec![self.accounts.audit_row("skew of accounts")];
        if script.has_begin() {
            rows.push(self.tellers.audit_row("skew of tellers"));
            rows.push(self.branches.audit_row("skew of branches"));
        }
        rows
    }
}
