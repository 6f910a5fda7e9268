//! One client: its next transaction, its waits, its work.

use crate::prelude::*;

use super::inputs::{Count, Inputs, Source};
use super::settings::{
    DELIVERY, Fault, KINDS, Mode, NEW_ORDER, ORDER_STATUS, PAYMENT, STOCK_LEVEL,
};
use super::statements::StatementMode;
use super::transaction::Transaction;
use super::{new_order, others, pipelined, procedures};

/// In percent, if kinds are drawn singly (clause 5.2.4.2): minimum shares but for the first.
pub(super) const WEIGHTS: [u64; KINDS.len()] = [45, 43, 4, 4, 4];

/// Cards of each kind in a deck (clause 5.2.4.2).
pub(super) const DECK: [u64; KINDS.len()] = [10, 10, 1, 1, 1];

const N_CARDS: usize = 23;

/// Keying time of each kind, in seconds (clause 5.2.5.7).
const KEYING_S: [f64; KINDS.len()] = [18.0, 3.0, 2.0, 2.0, 2.0];

/// Mean think time of each kind, in seconds (clause 5.2.5.7).
const THINKING_S: [f64; KINDS.len()] = [12.0, 12.0, 10.0, 5.0, 5.0];

/// Think times are cut off at so many times their mean (clause 5.2.5.4).
const THINKING_MOST: f64 = 10.0;

pub(super) struct Client {
    source: Source,
    inputs: Inputs,
    deck: Option<Deck>,
    statement_mode: StatementMode,
    base: usize,
    order_scratch: new_order::Scratch,
    scratch: others::Scratch,
    lines: Vec<u8>,
}

impl Client {
    pub(super) fn new(source: Source, statement_mode: StatementMode, set: u64) -> Client {
        let mut order_scratch = new_order::Scratch::default();
        order_scratch.forgets_stock = source.settings.has_fault(Fault::ForgetsStock);
        order_scratch.is_batched = statement_mode == StatementMode::Batched;
        Client {
            inputs: Source::nothing(),
            deck: source.settings.has_deck.then(Deck::new),
            source,
            statement_mode,
            base: statement_mode.base(set),
            order_scratch,
            scratch: others::Scratch::new(),
            lines: Vec::with_capacity(256),
        }
    }

    fn is_paced(&self) -> bool {
        self.source.settings.mode == Mode::Paced
    }
}

/// Cards that are shuffled whenever the last has been drawn.
struct Deck {
    cards: [u8; N_CARDS],
    next: usize,
}

impl Deck {
    fn new() -> Deck {
        let mut cards = [0; N_CARDS];
        let kinds = (0_u8..).zip(DECK).flat_map(|(kind, n)| (0..n).map(move |_| kind));
        cards.iter_mut().zip(kinds).for_each(|(card, kind)| *card = kind);
        Deck { cards, next: N_CARDS }
    }

    fn draw(&mut self, random: &mut RandomStream) -> usize {
        if self.next == N_CARDS {
            random.shuffle(&mut self.cards);
            self.next = 0;
        }
        self.next += 1;
        self.cards[self.next - 1].into()
    }
}

fn weighted(random: &mut RandomStream) -> usize {
    let mut left = random.below(100);
    for (kind, weight) in WEIGHTS.into_iter().enumerate() {
        if left < weight {
            return kind;
        }
        left -= weight;
    }
    STOCK_LEVEL
}

/// A think time around this mean (clause 5.2.5.4).
fn thinking(mean_s: f64, random: &mut RandomStream) -> Nanoseconds {
    Nanoseconds::from_secs_f64(random.exponential(mean_s).min(THINKING_MOST * mean_s))
}

impl Transactions for Client {
    fn draw(&mut self, random: &mut RandomStream) -> usize {
        let kind = match &mut self.deck {
            Some(deck) => deck.draw(random),
            None => weighted(random),
        };
        let (source, inputs) = (&mut self.source, &mut self.inputs);
        match kind {
            NEW_ORDER => source.new_order(&mut inputs.order, random),
            PAYMENT => source.payment(inputs, random),
            ORDER_STATUS => source.order_status(inputs, random),
            DELIVERY => source.delivery(inputs, random),
            _ => source.stock_level(inputs, random),
        }
        kind
    }

    fn pause_before(&mut self, kind: usize, _random: &mut RandomStream) -> Nanoseconds {
        Nanoseconds::from_secs_f64(if self.is_paced() { KEYING_S[kind] } else { 0.0 })
    }

    fn pause_after(&mut self, kind: usize, random: &mut RandomStream) -> Nanoseconds {
        if self.is_paced() { thinking(THINKING_S[kind], random) } else { Nanoseconds::ZERO }
    }

    async fn perform(&mut self, kind: usize, _: &mut RandomStream, session: &mut Session) -> Done {
        let settings = &self.source.settings;
        // Districts that a delivery leaves out, for tests.
        let n_skipped = settings.has_fault(Fault::SkipsDistricts).into();
        let is_pipelined = settings.is_pipelined;
        let tx = &mut Transaction::new(session, self.base, is_pipelined);
        let inputs = &self.inputs;
        let (order_scratch, scratch) = (&mut self.order_scratch, &mut self.scratch);
        let mut n_empty = 0;
        match (self.statement_mode, kind) {
            (StatementMode::Procedures, _) => {
                n_empty = procedures::call(tx, kind, inputs, &mut self.lines).await?;
            }
            (_, NEW_ORDER) if is_pipelined => {
                pipelined::new_order(tx, &inputs.order, order_scratch).await?;
            }
            (_, DELIVERY) if is_pipelined => {
                n_empty = pipelined::delivery(tx, inputs, n_skipped).await?;
            }
            (_, NEW_ORDER) => {
                new_order::perform(tx, &inputs.order, order_scratch).await?;
            }
            (_, PAYMENT) => others::payment(tx, inputs, scratch).await?,
            (_, ORDER_STATUS) => others::order_status(tx, inputs).await?,
            (_, DELIVERY) => n_empty = others::delivery(tx, inputs, n_skipped).await?,
            _ => others::stock_level(tx, inputs).await?,
        }
        let counts = [tx.statements, tx.round_trips, tx.rows];
        self.source.drawing.done(kind, counts);
        self.source.drawing.add(Count::EmptyDistricts, n_empty);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use dyno_units::Seed;

    use super::*;

    #[test]
    fn mixes_are_those_of_the_specification() {
        let mut random = Seed(1).stream();
        let mut counts = [0_u64; 5];
        (0..100_000).for_each(|_| counts[weighted(&mut random)] += 1);
        for (count, weight) in counts.into_iter().zip(WEIGHTS) {
            assert!(count.abs_diff(1000 * weight) < 800, "{counts:?}");
        }
        let mut deck = Deck::new();
        let orders: Vec<Vec<usize>> =
            (0..50).map(|_| (0..23).map(|_| deck.draw(&mut random)).collect()).collect();
        for order in &orders {
            let count = |kind| order.iter().filter(|&&card| card == kind).count() as u64;
            assert_eq!([0, 1, 2, 3, 4].map(count), DECK);
        }
        assert_ne!(orders[0], orders[1]);
    }

    #[test]
    fn think_times_are_exponential_and_have_an_end() {
        let mut random = Seed(2).stream();
        let times: Vec<f64> =
            (0..100_000).map(|_| thinking(12.0, &mut random).as_secs_f64()).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        assert!((mean - 12.0).abs() < 0.2, "{mean}");
        assert!(times.iter().all(|&time| time <= 120.0));
    }
}
