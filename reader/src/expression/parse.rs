//! From text to expression, by recursive descent. spec.md: SUB-2, SUB-5.
//!
//! Lists of `and` and `or` are taken in a loop; only parentheses and `not` go deeper, and no deeper than a bound.

use super::number::Number;
use super::token::{Kind, Token, tokens};
use super::tree::{Item, KEY, KEY_HASH, KEYWORDS, Name, Node, ORDINAL, Place, Predicate, Test, Value};
use super::{ExpressionError, MAX_DEPTH, MAX_LEN};

/// Longest text of a token that an error shows.
const SHOWN_LEN: usize = 40;

struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    /// The next token; the last, which is the end, is never passed.
    at: usize,
    depth: usize,
}

/// The expression of a text.
pub(super) fn parse(text: &str) -> Result<Node, ExpressionError> {
    if text.len() > MAX_LEN {
        return Err(ExpressionError::TooLong { len: text.len() });
    }
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
    let node = parser.alternatives()?;
    match parser.token().kind {
        Kind::End => Ok(node),
        Kind::Close => Err(parser.unexpected("no more: no parenthesis is open")),
        _ => Err(parser.expected("`and`, `or` or the end")),
    }
}

impl Parser<'_> {
    fn alternatives(&mut self) -> Result<Node, ExpressionError> {
        let mut parts = vec![self.requirements()?];
        while self.took_keyword("or") {
            parts.push(self.requirements()?);
        }
        Ok(joined(parts, Node::Any))
    }

    fn requirements(&mut self) -> Result<Node, ExpressionError> {
        let mut parts = vec![self.requirement()?];
        while self.took_keyword("and") {
            parts.push(self.requirement()?);
        }
        Ok(joined(parts, Node::All))
    }

    fn requirement(&mut self) -> Result<Node, ExpressionError> {
        if self.is_keyword("not") {
            return self.deeper(|parser| Ok(Node::Not(Box::new(parser.requirement()?))));
        }
        if self.token().kind == Kind::Open {
            return self.deeper(|parser| {
                let node = parser.alternatives()?;
                parser.close()?;
                Ok(node)
            });
        }
        self.test().map(Node::Test)
    }

    /// Takes a token, and what it starts one level further down.
    fn deeper(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<Node, ExpressionError>,
    ) -> Result<Node, ExpressionError> {
        if self.depth == MAX_DEPTH {
            return Err(ExpressionError::TooDeep { column: self.token().column });
        }
        self.step();
        self.depth += 1;
        let node = inner(self);
        self.depth -= 1;
        node
    }

    fn test(&mut self) -> Result<Test, ExpressionError> {
        let place = Place(self.token().column);
        let name = self.name()?;
        Ok(Test { predicate: self.predicate(&name)?, name, place })
    }

    fn name(&mut self) -> Result<Name, ExpressionError> {
        let token = self.token();
        let name = match (&token.kind, token.text) {
            (Kind::Name(name), _) => Name::Attribute(name.clone()),
            (Kind::Word, ORDINAL) => Name::Ordinal,
            (Kind::Word, KEY) => Name::Key,
            (Kind::Word, KEY_HASH) => Name::KeyHash,
            (Kind::Word, word) if !KEYWORDS.iter().any(|keyword| word.eq_ignore_ascii_case(keyword)) => {
                Name::Attribute(word.to_owned())
            }
            _ => return Err(self.expected("an attribute, `not` or a parenthesis")),
        };
        self.step();
        Ok(name)
    }

    fn predicate(&mut self, name: &Name) -> Result<Predicate, ExpressionError> {
        match self.token().kind {
            Kind::Side(side) => {
                self.step();
                return Ok(Predicate::Side(side, self.number()?));
            }
            Kind::Equal => return self.one(false),
            Kind::Unequal => return self.one(true),
            _ => {}
        }
        if self.took_keyword("in") {
            return Ok(Predicate::Among { items: self.items()?, negated: false });
        }
        if self.took_keyword("not") {
            self.keyword("in", "`in`")?;
            return Ok(Predicate::Among { items: self.items()?, negated: true });
        }
        if self.took_keyword("is") {
            return self.presence(name);
        }
        if *name == Name::Key && self.took_keyword("starts") {
            self.keyword("with", "`with`")?;
            return self.prefix();
        }
        Err(self.expected("a comparison, `in` or `is`"))
    }

    fn presence(&mut self, name: &Name) -> Result<Predicate, ExpressionError> {
        if !matches!(name, Name::Attribute(_)) {
            return Err(self.unexpected(&format!("no `is`: only attributes can be missing, {name} cannot")));
        }
        let negated = self.took_keyword("missing");
        if self.is_keyword("not") {
            return Err(self.expected("`missing` or its opposite, `present`,"));
        }
        if !negated {
            self.keyword("present", "`missing` or `present`")?;
        }
        Ok(Predicate::Present { negated })
    }

    /// The one value behind `==` or `!=`.
    fn one(&mut self, negated: bool) -> Result<Predicate, ExpressionError> {
        self.step();
        Ok(Predicate::Among { items: vec![Item::Value(self.value()?)], negated })
    }

    fn prefix(&mut self) -> Result<Predicate, ExpressionError> {
        let Kind::Text(text) = &self.token().kind else {
            return Err(self.expected_text("a string"));
        };
        let predicate = Predicate::StartsWith(text.clone());
        self.step();
        Ok(predicate)
    }

    /// A list, between parentheses or not.
    fn items(&mut self) -> Result<Vec<Item>, ExpressionError> {
        let in_parentheses = self.token().kind == Kind::Open;
        if in_parentheses {
            self.step();
        }
        let mut items = vec![self.item()?];
        while self.token().kind == Kind::Comma {
            self.step();
            items.push(self.item()?);
        }
        if in_parentheses {
            self.close()?;
        }
        Ok(items)
    }

    fn item(&mut self) -> Result<Item, ExpressionError> {
        let column = self.token().column;
        let value = self.value()?;
        let Value::Number(start) = value else {
            return Ok(Item::Value(value));
        };
        if self.token().kind != Kind::Range {
            return Ok(Item::Value(Value::Number(start)));
        }
        self.step();
        let end = self.number()?;
        if start >= end {
            let what = format!("empty range {start}..{end}");
            return Err(ExpressionError::Literal { what, column });
        }
        Ok(Item::Range(start, end))
    }

    fn value(&mut self) -> Result<Value, ExpressionError> {
        let token = self.token();
        let value = match &token.kind {
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::Text(text) => Value::Text(text.clone()),
            Kind::Word if token.text.eq_ignore_ascii_case("true") => Value::Bool(true),
            Kind::Word if token.text.eq_ignore_ascii_case("false") => Value::Bool(false),
            _ => return Err(self.expected_text("a value")),
        };
        self.step();
        Ok(value)
    }

    fn number(&mut self) -> Result<Number, ExpressionError> {
        let Kind::Number(number) = &self.token().kind else {
            return Err(self.expected("a number"));
        };
        let number = number.clone();
        self.step();
        Ok(number)
    }

    fn close(&mut self) -> Result<(), ExpressionError> {
        if self.token().kind != Kind::Close {
            return Err(self.expected("`)`"));
        }
        self.step();
        Ok(())
    }

    fn keyword(&mut self, keyword: &str, expected: &str) -> Result<(), ExpressionError> {
        if self.took_keyword(keyword) { Ok(()) } else { Err(self.expected(expected)) }
    }

    fn took_keyword(&mut self, keyword: &str) -> bool {
        let is_next = self.is_keyword(keyword);
        if is_next {
            self.step();
        }
        is_next
    }

    fn is_keyword(&self, keyword: &str) -> bool {
        let token = self.token();
        token.kind == Kind::Word && token.text.eq_ignore_ascii_case(keyword)
    }

    fn token(&self) -> &Token<'_> {
        &self.tokens[self.at]
    }

    fn step(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    /// What should stand here, after what does.
    fn expected(&self, what: &str) -> ExpressionError {
        match self.at.checked_sub(1).and_then(|before| self.tokens.get(before)) {
            Some(before) => self.unexpected(&format!("{what} after {}", shown(before))),
            None => self.unexpected(what),
        }
    }

    /// The same, where a string may have been meant by what stands here.
    fn expected_text(&self, what: &str) -> ExpressionError {
        let mut error = self.expected(what);
        let token = self.token();
        let meant = match &token.kind {
            Kind::Name(name) => name.as_str(),
            Kind::Word if !KEYWORDS.iter().any(|keyword| token.text.eq_ignore_ascii_case(keyword)) => token.text,
            _ => return error,
        };
        if let ExpressionError::Unexpected { found, .. } = &mut error {
            let text = if meant.len() > SHOWN_LEN { "..." } else { meant };
            found.push_str(&format!(": strings stand in single quotes: {}", Value::Text(text.into())));
        }
        error
    }

    fn unexpected(&self, expected: &str) -> ExpressionError {
        let token = self.token();
        ExpressionError::Unexpected { expected: expected.to_owned(), column: token.column, found: shown(token) }
    }
}

/// One part stands for itself.
fn joined(mut parts: Vec<Node>, join: impl FnOnce(Vec<Node>) -> Node) -> Node {
    match (parts.pop(), parts.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            parts.extend(last);
            join(parts)
        }
    }
}

fn shown(token: &Token<'_>) -> String {
    if token.kind == Kind::End {
        return "the end".to_owned();
    }
    let start: String = token.text.chars().take(SHOWN_LEN).collect();
    let more = if start.len() < token.text.len() { "..." } else { "" };
    // The backslashes and quotes are the text's own.
    let start: String = start.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("`{start}{more}`")
}
