//! Evaluates expressions.

use crate::expression::{Expression, Function, Node};
use crate::random::{Prng, hash_fnv1a, hash_murmur2, permute};
use crate::value::{Value, fixed};
use crate::variables::{Names, Variables};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EvaluationError(String);

impl EvaluationError {
    pub(crate) fn new(message: impl Into<String>) -> EvaluationError {
        EvaluationError(message.into())
    }

    /// An error that pgbench reports without a reason: an empty text is no value.
    pub(crate) fn silent() -> EvaluationError {
        EvaluationError(String::new())
    }

    /// The reason; empty if pgbench gives none.
    pub fn message(&self) -> &str {
        &self.0
    }
}

pub struct Scope<'a> {
    pub names: &'a Names,
    pub variables: &'a mut Variables,
    pub random: &'a mut Prng,
    pub debug: &'a mut dyn FnMut(&str),
}

const ARGUMENTS_MOST: usize = 16;

type Evaluated = Result<Value, EvaluationError>;

impl Expression {
    /// The value of the expression.
    /// Fails with what pgbench reports: an undefined variable, a wrong type, an overflow, a division by zero.
    pub fn evaluate(&self, scope: &mut Scope<'_>) -> Result<Value, EvaluationError> {
        evaluate(&self.0, scope)
    }
}

fn evaluate(node: &Node, scope: &mut Scope<'_>) -> Evaluated {
    match node {
        Node::Constant(value) => Ok(*value),
        Node::Variable(slot) => scope.variables.value(*slot, scope.names),
        Node::Call(function, arguments) => match (function, &arguments[..]) {
            (Function::And, [left, right]) => logical(left, right, false, scope),
            (Function::Or, [left, right]) => logical(left, right, true, scope),
            (Function::Case, branches) => case(branches, scope),
            (_, [one]) => {
                let values = [evaluate(one, scope)?];
                apply(*function, &values, scope)
            }
            (_, [left, right]) => {
                let values = [evaluate(left, scope)?, evaluate(right, scope)?];
                apply(*function, &values, scope)
            }
            (_, more) => {
                let mut values = [Value::Null; ARGUMENTS_MOST];
                for (idx, argument) in more.iter().enumerate() {
                    let why = "too many function arguments, maximum is";
                    let too_many = || EvaluationError::new(format!("{why} {ARGUMENTS_MOST}"));
                    let place = values.get_mut(idx).ok_or_else(too_many)?;
                    *place = evaluate(argument, scope)?;
                }
                apply(*function, &values[..more.len()], scope)
            }
        },
    }
}

/// AND and OR: the right side is not evaluated where the left one is `deciding` or null.
fn logical(left: &Node, right: &Node, deciding: bool, scope: &mut Scope<'_>) -> Evaluated {
    for side in [left, right] {
        let value = evaluate(side, scope)?;
        if value == Value::Null {
            return Ok(Value::Null);
        }
        if value.to_boolean()? == deciding {
            return Ok(Value::Boolean(deciding));
        }
    }
    Ok(Value::Boolean(!deciding))
}

fn case(branches: &[Node], scope: &mut Scope<'_>) -> Evaluated {
    let (pairs, last) = branches.split_at(branches.len() - 1);
    for pair in pairs.chunks_exact(2) {
        if evaluate(&pair[0], scope)?.is_true() {
            return evaluate(&pair[1], scope);
        }
    }
    evaluate(&last[0], scope)
}

fn apply(function: Function, values: &[Value], scope: &mut Scope<'_>) -> Evaluated {
    use Function as F;
    let has_null = values.contains(&Value::Null);
    if has_null && !matches!(function, F::Is | F::Debug) {
        return Ok(Value::Null);
    }
    match (function, values) {
        (F::Debug, [value]) => {
            (scope.debug)(&value.shown());
            Ok(*value)
        }
        (F::Is, [left, right]) => Ok(Value::Boolean(left == right)),
        (F::Not, [value]) => Ok(Value::Boolean(!value.to_boolean()?)),
        (F::Pi, _) => Ok(Value::Double(std::f64::consts::PI)),
        (F::Abs, [value]) => match value {
            Value::Integer(value) => Ok(Value::Integer(value.wrapping_abs())),
            other => Ok(Value::Double(other.to_double()?.abs())),
        },
        (F::Double, [value]) => value.to_double().map(Value::Double),
        (F::Sqrt, [value]) => Ok(Value::Double(value.to_double()?.sqrt())),
        (F::Ln, [value]) => Ok(Value::Double(value.to_double()?.ln())),
        (F::Exp, [value]) => Ok(Value::Double(value.to_double()?.exp())),
        (F::Int, [value]) => value.to_integer().map(Value::Integer),
        (F::Power, [base, power]) => Ok(Value::Double(base.to_double()?.powf(power.to_double()?))),
        // Of a number and NaN it is the second, as C's comparison gives it.
        (F::Least, values) => extreme(values, i64::min, |a, b| if a < b { a } else { b }),
        (F::Greatest, values) => extreme(values, i64::max, |a, b| if a > b { a } else { b }),
        (F::HashFnv1a | F::HashMurmur2, [value, seed]) => {
            let hash = if function == F::HashFnv1a { hash_fnv1a } else { hash_murmur2 };
            Ok(Value::Integer(hash(value.to_integer()?, seed.to_integer()?)))
        }
        (F::Permute, [value, size, seed]) => permuted(*value, *size, *seed),
        (F::Random, [least, most]) => {
            let (least, most) = range(*least, *most)?;
            Ok(Value::Integer(scope.random.uniform(least, most)))
        }
        (F::RandomExponential | F::RandomGaussian | F::RandomZipfian, [least, most, parameter]) => {
            skewed(function, range(*least, *most)?, *parameter, scope.random)
        }
        (_, [left, right]) => operation(function, *left, *right),
        _ => Err(EvaluationError::new("a function has the wrong number of arguments")),
    }
}

/// A function of two numbers.
type Of<T> = fn(T, T) -> T;

/// The least or greatest: a double if one of them is.
fn extreme(values: &[Value], of_integers: Of<i64>, of_doubles: Of<f64>) -> Evaluated {
    if values.iter().any(|value| matches!(value, Value::Double(_))) {
        let mut extreme = values[0].to_double()?;
        for value in &values[1..] {
            extreme = of_doubles(extreme, value.to_double()?);
        }
        return Ok(Value::Double(extreme));
    }
    let mut extreme = values[0].to_integer()?;
    for value in &values[1..] {
        extreme = of_integers(extreme, value.to_integer()?);
    }
    Ok(Value::Integer(extreme))
}

fn permuted(value: Value, size: Value, seed: Value) -> Evaluated {
    let (value, size, seed) = (value.to_integer()?, size.to_integer()?, seed.to_integer()?);
    if size <= 0 {
        return Err(EvaluationError::new("permute size parameter must be greater than zero"));
    }
    Ok(Value::Integer(permute(value, size, seed)))
}

fn range(least: Value, most: Value) -> Result<(i64, i64), EvaluationError> {
    let (least, most) = (least.to_integer()?, most.to_integer()?);
    if least > most {
        return Err(EvaluationError::new("empty range given to random"));
    }
    let size = most.checked_sub(least).and_then(|difference| difference.checked_add(1));
    size.map(|_| (least, most)).ok_or_else(|| EvaluationError::new("random range is too large"))
}

fn skewed(of: Function, range: (i64, i64), parameter: Value, random: &mut Prng) -> Evaluated {
    let ((least, most), parameter) = (range, parameter.to_double()?);
    let wrong = match of {
        Function::RandomGaussian if parameter < 2.0 => {
            "gaussian parameter must be at least 2.000000"
        }
        Function::RandomZipfian if !(1.001..=1000.0).contains(&parameter) => {
            "zipfian parameter must be in range [1.001, 1000]"
        }
        Function::RandomExponential if parameter <= 0.0 => {
            "exponential parameter must be greater than zero"
        }
        _ => "",
    };
    if !wrong.is_empty() {
        return Err(EvaluationError::new(format!("{wrong} (not {})", fixed(parameter))));
    }
    Ok(Value::Integer(match of {
        Function::RandomGaussian => random.gaussian(least, most, parameter),
        Function::RandomZipfian => random.zipfian(least, most, parameter),
        _ => random.exponential(least, most, parameter),
    }))
}

/// An operator with two operands: of doubles if one of them is.
fn operation(function: Function, left: Value, right: Value) -> Evaluated {
    use Function as F;
    let is_double = |value: Value| matches!(value, Value::Double(_));
    let of_doubles: Option<fn(f64, f64) -> Value> = match function {
        _ if !is_double(left) && !is_double(right) => None,
        F::Add => Some(|left, right| Value::Double(left + right)),
        F::Subtract => Some(|left, right| Value::Double(left - right)),
        F::Multiply => Some(|left, right| Value::Double(left * right)),
        F::Divide => Some(|left, right| Value::Double(left / right)),
        F::Equal => Some(|left, right| Value::Boolean(left == right)),
        F::NotEqual => Some(|left, right| Value::Boolean(left != right)),
        F::LessOrEqual => Some(|left, right| Value::Boolean(left <= right)),
        F::Less => Some(|left, right| Value::Boolean(left < right)),
        _ => None,
    };
    match of_doubles {
        Some(of_doubles) => Ok(of_doubles(left.to_double()?, right.to_double()?)),
        None => of_integers(function, left.to_integer()?, right.to_integer()?),
    }
}

fn of_integers(function: Function, left: i64, right: i64) -> Evaluated {
    let whole = |value: Option<i64>, name: &str| {
        let too_large = || EvaluationError::new(format!("bigint {name} out of range"));
        value.map(Value::Integer).ok_or_else(too_large)
    };
    match function {
        Function::Add => whole(left.checked_add(right), "add"),
        Function::Subtract => whole(left.checked_sub(right), "sub"),
        Function::Multiply => whole(left.checked_mul(right), "mul"),
        Function::Divide | Function::Modulo if right == 0 => {
            Err(EvaluationError::new("division by zero"))
        }
        Function::Divide => whole(left.checked_div(right), "div"),
        Function::Modulo => Ok(Value::Integer(left.wrapping_rem(right))),
        Function::Equal => Ok(Value::Boolean(left == right)),
        Function::NotEqual => Ok(Value::Boolean(left != right)),
        Function::LessOrEqual => Ok(Value::Boolean(left <= right)),
        Function::Less => Ok(Value::Boolean(left < right)),
        Function::BitAnd => Ok(Value::Integer(left & right)),
        Function::BitOr => Ok(Value::Integer(left | right)),
        Function::BitXor => Ok(Value::Integer(left ^ right)),
        // As the processor does: the count modulo 64.
        Function::ShiftLeft => Ok(Value::Integer(left.wrapping_shl(right as u32))),
        Function::ShiftRight => Ok(Value::Integer(left.wrapping_shr(right as u32))),
        _ => Err(EvaluationError::new("a function has the wrong number of arguments")),
    }
}
