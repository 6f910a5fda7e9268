//! Expressions: their grammar, read by precedence.

use crate::lexer::{Lexer, Problem, Token};
use crate::value::Value;
use crate::variables::{Names, Slot};

/// An expression of `\set`, `\if` or `\elif`.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression(pub(crate) Node);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Constant(Value),
    Variable(Slot),
    Call(Function, Box<[Node]>),
}

impl Expression {
    /// Reads an expression of one line, as it stands behind `\\if`.
    /// Fails with what is wrong.
    pub fn read(text: &str, names: &mut Names) -> Result<Expression, String> {
        if text.contains('\n') {
            return Err("an expression is one line".to_owned());
        }
        Parser::read(&mut Lexer::new(text, 0), names).map_err(|problem| match problem.about {
            Some(about) => format!("{} ({about})", problem.message),
            None => problem.message.to_owned(),
        })
    }

    /// The variable and the number, if the expression is a variable to which a whole number is added, or
    /// from which one is subtracted: the commonest one, for callers that have a shorter way to it.
    pub fn as_offset(&self) -> Option<(Slot, i64)> {
        let Node::Call(function, arguments) = &self.0 else { return None };
        match (function, &arguments[..]) {
            (Function::Add, [Node::Variable(slot), Node::Constant(Value::Integer(number))])
            | (Function::Add, [Node::Constant(Value::Integer(number)), Node::Variable(slot)]) => {
                Some((*slot, *number))
            }
            (
                Function::Subtract,
                [Node::Variable(slot), Node::Constant(Value::Integer(number))],
            ) => Some((*slot, number.checked_neg()?)),
            _ => None,
        }
    }

    /// The variables in it, each once.
    pub fn variables(&self) -> Vec<Slot> {
        let mut found = Vec::new();
        let mut open = vec![&self.0];
        while let Some(node) = open.pop() {
            match node {
                Node::Constant(_) => {}
                Node::Variable(slot) if found.contains(slot) => {}
                Node::Variable(slot) => found.push(*slot),
                Node::Call(_, arguments) => open.extend(arguments),
            }
        }
        found
    }
}

/// How tightly operators bind, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Lowest,
    Or,
    And,
    Not,
    Is,
    Compare,
    Bits,
    Sum,
    Product,
    Unary,
}

/// Deepest nesting that is read: evaluation recurses as deep.
const DEEPEST: usize = 500;

/// Most operators of an expression: a chain of them is a tree as high as it is long.
const OPERATORS_MOST: usize = 2000;

pub(crate) struct Parser<'a, 'n> {
    lexer: &'a mut Lexer<'n>,
    names: &'a mut Names,
    token: Token,
    depth: usize,
    n_operators: usize,
}

impl Parser<'_, '_> {
    /// Reads one expression up to the end of its line.
    /// Fails with what is wrong, and where.
    pub(crate) fn read(lexer: &mut Lexer<'_>, names: &mut Names) -> Result<Expression, Problem> {
        let token = lexer.next_token()?;
        let mut parser = Parser { lexer, names, token, depth: 0, n_operators: 0 };
        let node = parser.expression(Level::Lowest)?;
        if parser.token == Token::End { Ok(Expression(node)) } else { Err(parser.unexpected()) }
    }

    fn advance(&mut self) -> Result<Token, Problem> {
        let next = self.lexer.next_token()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn unexpected(&self) -> Problem {
        self.lexer.problem("syntax error", None)
    }

    fn expect(&mut self, wanted: &Token) -> Result<(), Problem> {
        if self.token != *wanted {
            return Err(self.unexpected());
        }
        self.advance().map(|_| ())
    }

    /// An expression of operators that bind tighter than `below`.
    fn expression(&mut self, below: Level) -> Result<Node, Problem> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.lexer.problem("memory exhausted", None));
        }
        let mut left = self.operand()?;
        while let Some((level, operator)) = binary(&self.token) {
            if level <= below {
                break;
            }
            self.n_operators += 1;
            if self.n_operators > OPERATORS_MOST {
                return Err(self.lexer.problem("memory exhausted", None));
            }
            left = match operator {
                Operator::Postfix => self.null_test(left)?,
                Operator::Binary(function, is_swapped) => {
                    self.advance()?;
                    let right = self.expression(level)?;
                    call(function, if is_swapped { [right, left] } else { [left, right] })
                }
            };
            // Comparisons and tests do not associate: `1 < 2 < 3` is an error.
            if matches!(level, Level::Compare | Level::Is)
                && binary(&self.token).is_some_and(|(next, _)| next == level)
            {
                return Err(self.unexpected());
            }
        }
        self.depth -= 1;
        Ok(left)
    }

    /// `IS [NOT] NULL`, `IS [NOT] TRUE`, `ISNULL` or `NOTNULL` after its operand.
    fn null_test(&mut self, operand: Node) -> Result<Node, Problem> {
        let (is_negated, tested) = match self.advance()? {
            Token::Known("isnull") => (false, Value::Null),
            Token::Known("notnull") => (true, Value::Null),
            _ => {
                let is_negated = self.token == Token::Known("not");
                if is_negated {
                    self.advance()?;
                }
                let tested = match self.token {
                    Token::Known("null") => Value::Null,
                    Token::Boolean(value) => Value::Boolean(value),
                    _ => return Err(self.unexpected()),
                };
                self.advance()?;
                (is_negated, tested)
            }
        };
        let test = call(Function::Is, [operand, Node::Constant(tested)]);
        Ok(if is_negated { call(Function::Not, [test]) } else { test })
    }

    fn operand(&mut self) -> Result<Node, Problem> {
        if self.token == Token::Known("-") {
            self.advance()?;
            // The least whole number can only be written with its sign.
            if self.token == Token::TooLargeByOne {
                self.advance()?;
                return Ok(Node::Constant(Value::Integer(i64::MIN)));
            }
            let operand = self.expression(Level::Unary)?;
            return Ok(call(Function::Subtract, [Node::Constant(Value::Integer(0)), operand]));
        }
        match self.token.clone() {
            Token::Known("case") => return self.case(),
            Token::Word(name) => return self.function(&name),
            Token::Known("null" | "+" | "~" | "not" | "(") | Token::Variable(_) => {}
            Token::Boolean(_) | Token::Integer(_) | Token::Double(_) => {}
            _ => return Err(self.unexpected()),
        }
        Ok(match self.advance()? {
            Token::Boolean(value) => Node::Constant(Value::Boolean(value)),
            Token::Integer(value) => Node::Constant(Value::Integer(value)),
            Token::Double(value) => Node::Constant(Value::Double(value)),
            Token::Variable(name) => Node::Variable(self.names.slot(&name)),
            Token::Known("+") => self.expression(Level::Unary)?,
            Token::Known("~") => {
                let operand = self.expression(Level::Bits)?;
                call(Function::BitXor, [Node::Constant(Value::Integer(-1)), operand])
            }
            Token::Known("not") => call(Function::Not, [self.expression(Level::Not)?]),
            Token::Known("(") => {
                let inner = self.expression(Level::Lowest)?;
                self.expect(&Token::Known(")"))?;
                inner
            }
            _ => Node::Constant(Value::Null),
        })
    }

    fn case(&mut self) -> Result<Node, Problem> {
        self.advance()?;
        let mut branches = Vec::new();
        loop {
            self.expect(&Token::Known("when"))?;
            branches.push(self.expression(Level::Lowest)?);
            self.expect(&Token::Known("then"))?;
            branches.push(self.expression(Level::Lowest)?);
            if self.token != Token::Known("when") {
                break;
            }
        }
        branches.push(match self.token {
            Token::Known("else") => {
                self.advance()?;
                self.expression(Level::Lowest)?
            }
            _ => Node::Constant(Value::Null),
        });
        self.expect(&Token::Known("end"))?;
        Ok(Node::Call(Function::Case, branches.into()))
    }

    fn function(&mut self, name: &str) -> Result<Node, Problem> {
        let Some((name, function, arity)) = find(name) else {
            return Err(self.lexer.problem("unexpected function name", Some(name)));
        };
        self.advance()?;
        self.expect(&Token::Known("("))?;
        let mut arguments = Vec::new();
        if self.token != Token::Known(")") {
            // The grammar takes a list that begins with a comma.
            if self.token != Token::Known(",") {
                arguments.push(self.expression(Level::Lowest)?);
            }
            while self.token == Token::Known(",") {
                self.advance()?;
                arguments.push(self.expression(Level::Lowest)?);
            }
        }
        if self.token != Token::Known(")") {
            return Err(self.unexpected());
        }
        let n = arguments.len();
        let why = match arity {
            Arity::Exactly(wanted) if n != wanted => "unexpected number of arguments",
            Arity::Seeded(most) if n != most && n + 1 != most => "unexpected number of arguments",
            Arity::AtLeastOne if n == 0 => "at least one argument expected",
            _ => "",
        };
        if !why.is_empty() {
            return Err(self.lexer.problem(why, Some(name)));
        }
        if matches!(arity, Arity::Seeded(most) if n + 1 == most) {
            arguments.push(Node::Variable(self.names.slot("default_seed")));
        }
        self.advance()?;
        Ok(Node::Call(function, arguments.into()))
    }
}

fn call<const N: usize>(function: Function, arguments: [Node; N]) -> Node {
    Node::Call(function, Box::new(arguments))
}

enum Operator {
    /// A function of two arguments, and whether they are swapped.
    Binary(Function, bool),
    /// A test for null, true or false.
    Postfix,
}

fn binary(token: &Token) -> Option<(Level, Operator)> {
    let Token::Known(known) = *token else { return None };
    let (level, function) = match known {
        "or" => (Level::Or, Function::Or),
        "and" => (Level::And, Function::And),
        "is" | "isnull" | "notnull" => return Some((Level::Is, Operator::Postfix)),
        "<" | ">" => (Level::Compare, Function::Less),
        "<=" | ">=" => (Level::Compare, Function::LessOrEqual),
        "=" => (Level::Compare, Function::Equal),
        "<>" | "!=" => (Level::Compare, Function::NotEqual),
        "|" => (Level::Bits, Function::BitOr),
        "#" => (Level::Bits, Function::BitXor),
        "&" => (Level::Bits, Function::BitAnd),
        "<<" => (Level::Bits, Function::ShiftLeft),
        ">>" => (Level::Bits, Function::ShiftRight),
        "+" => (Level::Sum, Function::Add),
        "-" => (Level::Sum, Function::Subtract),
        "*" => (Level::Product, Function::Multiply),
        "/" => (Level::Product, Function::Divide),
        "%" => (Level::Product, Function::Modulo),
        _ => return None,
    };
    Some((level, Operator::Binary(function, matches!(known, ">" | ">="))))
}

// The functions and operators of expressions.

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
enum Arity {
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
fn find(name: &str) -> Option<(&'static str, Function, Arity)> {
    CALLED.iter().find(|(called, ..)| called.eq_ignore_ascii_case(name)).copied()
}
