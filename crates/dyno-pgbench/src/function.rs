//! The functions and operators of expressions.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Not,
    And,
    Or,
    Is,
    Case,
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arity {
    Exactly(usize),
    AtLeastOne,
    /// So many, and `:default_seed` if the last one is left out.
    Seeded(usize),
}

/// The functions that can be called by name.
const CALLED: [(&str, Function, Arity); 21] = {
    use Arity::{AtLeastOne, Exactly, Seeded};
    [
        ("mod", Function::Modulo, Exactly(2)),
        ("abs", Function::Abs, Exactly(1)),
        ("least", Function::Least, AtLeastOne),
        ("greatest", Function::Greatest, AtLeastOne),
        ("debug", Function::Debug, Exactly(1)),
        ("pi", Function::Pi, Exactly(0)),
        ("sqrt", Function::Sqrt, Exactly(1)),
        ("ln", Function::Ln, Exactly(1)),
        ("exp", Function::Exp, Exactly(1)),
        ("int", Function::Int, Exactly(1)),
        ("double", Function::Double, Exactly(1)),
        ("random", Function::Random, Exactly(2)),
        ("random_gaussian", Function::RandomGaussian, Exactly(3)),
        ("random_exponential", Function::RandomExponential, Exactly(3)),
        ("random_zipfian", Function::RandomZipfian, Exactly(3)),
        ("pow", Function::Power, Exactly(2)),
        ("power", Function::Power, Exactly(2)),
        ("hash", Function::HashMurmur2, Seeded(2)),
        ("hash_murmur2", Function::HashMurmur2, Seeded(2)),
        ("hash_fnv1a", Function::HashFnv1a, Seeded(2)),
        ("permute", Function::Permute, Seeded(3)),
    ]
};

/// The function of this name, its name as pgbench writes it, and how many arguments it takes.
pub(crate) fn find(name: &str) -> Option<(&'static str, Function, Arity)> {
    CALLED.iter().find(|(called, ..)| called.eq_ignore_ascii_case(name)).copied()
}
