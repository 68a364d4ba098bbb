//! Parses an expression by recursive descent. order.md: SUB-2, SUB-5.
//!
//! Lists of `and` and `or` are parsed in a loop; only parentheses and `not` recurse, up to a bound.

use super::number::Number;
use super::token::{Token, TokenKind, tokens};
use super::tree::{
    Condition, KEY, KEY_HASH, KEYWORDS, ListItem, Literal, Name, Node, ORDINAL, Pattern, Predicate, TextPosition,
};
use super::{ExpressionError, MAX_DEPTH, MAX_LEN};

/// Longest text of a token that an error shows.
const SHOWN_LEN: usize = 40;

struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    /// Index of the next token; never past the last one, which is the end.
    at: usize,
    depth: usize,
}

/// Parses a text.
pub(super) fn parse(text: &str) -> Result<Node, ExpressionError> {
    if text.len() > MAX_LEN {
        return Err(ExpressionError::TooLong { len: text.len() });
    }
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
    let node = parser.alternatives()?;
    match parser.token().kind {
        TokenKind::End => Ok(node),
        TokenKind::Close => Err(parser.unexpected("no more: no parenthesis is open")),
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
        if self.token().kind == TokenKind::Open {
            return self.deeper(|parser| {
                let node = parser.alternatives()?;
                parser.close()?;
                Ok(node)
            });
        }
        self.test().map(Node::Condition)
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

    fn test(&mut self) -> Result<Condition, ExpressionError> {
        let column = TextPosition(self.token().column);
        let name = self.name()?;
        Ok(Condition { predicate: self.predicate(&name)?, name, column })
    }

    fn name(&mut self) -> Result<Name, ExpressionError> {
        let token = self.token();
        let name = match (&token.kind, token.text) {
            (TokenKind::Name(name), _) => Name::Attribute(name.clone()),
            (TokenKind::Word, ORDINAL) => Name::Ordinal,
            (TokenKind::Word, KEY) => Name::Key,
            (TokenKind::Word, KEY_HASH) => Name::KeyHash,
            (TokenKind::Word, word) if !KEYWORDS.iter().any(|keyword| word.eq_ignore_ascii_case(keyword)) => {
                Name::Attribute(word.to_owned())
            }
            _ => return Err(self.expected("an attribute, `not` or a parenthesis")),
        };
        self.step();
        Ok(name)
    }

    fn predicate(&mut self, name: &Name) -> Result<Predicate, ExpressionError> {
        match self.token().kind {
            TokenKind::Comparison(side) => {
                self.step();
                return Ok(Predicate::Compare(side, self.number()?));
            }
            TokenKind::Equal => return self.one(false),
            TokenKind::Unequal => return self.one(true),
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
        if self.took_keyword("starts") {
            self.keyword("with", "`with`")?;
            return Ok(Predicate::Match(Pattern::StartsWith(self.text()?)));
        }
        if self.took_keyword("contains") {
            return Ok(Predicate::Match(Pattern::Contains(self.text()?)));
        }
        Err(self.expected("a comparison, `in`, `is`, `starts with` or `contains`"))
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

    /// The value after `==` or `!=`.
    fn one(&mut self, negated: bool) -> Result<Predicate, ExpressionError> {
        self.step();
        Ok(Predicate::Among { items: vec![ListItem::Literal(self.value()?)], negated })
    }

    fn text(&mut self) -> Result<Vec<u8>, ExpressionError> {
        let TokenKind::Text(text) = &self.token().kind else {
            return Err(self.expected_text("a string"));
        };
        let text = text.clone();
        self.step();
        Ok(text)
    }

    /// A list, between parentheses or not.
    fn items(&mut self) -> Result<Vec<ListItem>, ExpressionError> {
        let in_parentheses = self.token().kind == TokenKind::Open;
        if in_parentheses {
            self.step();
        }
        let mut items = vec![self.item()?];
        while self.token().kind == TokenKind::Comma {
            self.step();
            items.push(self.item()?);
        }
        if in_parentheses {
            self.close()?;
        }
        Ok(items)
    }

    fn item(&mut self) -> Result<ListItem, ExpressionError> {
        let column = self.token().column;
        let value = self.value()?;
        let Literal::Number(start) = value else {
            return Ok(ListItem::Literal(value));
        };
        if self.token().kind != TokenKind::Range {
            return Ok(ListItem::Literal(Literal::Number(start)));
        }
        self.step();
        let end = self.number()?;
        if start >= end {
            let what = format!("empty range {start}..{end}");
            return Err(ExpressionError::Literal { what, column });
        }
        Ok(ListItem::Range(start, end))
    }

    fn value(&mut self) -> Result<Literal, ExpressionError> {
        let token = self.token();
        let value = match &token.kind {
            TokenKind::Number(number) => Literal::Number(number.clone()),
            TokenKind::Text(text) => Literal::Text(text.clone()),
            TokenKind::Word if token.text.eq_ignore_ascii_case("true") => Literal::Bool(true),
            TokenKind::Word if token.text.eq_ignore_ascii_case("false") => Literal::Bool(false),
            _ => return Err(self.expected_text("a value")),
        };
        self.step();
        Ok(value)
    }

    fn number(&mut self) -> Result<Number, ExpressionError> {
        let TokenKind::Number(number) = &self.token().kind else {
            return Err(self.expected("a number"));
        };
        let number = number.clone();
        self.step();
        Ok(number)
    }

    fn close(&mut self) -> Result<(), ExpressionError> {
        if self.token().kind != TokenKind::Close {
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
        token.kind == TokenKind::Word && token.text.eq_ignore_ascii_case(keyword)
    }

    fn token(&self) -> &Token<'_> {
        &self.tokens[self.at]
    }

    fn step(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    /// The error for an unexpected token, which names the token before it.
    fn expected(&self, what: &str) -> ExpressionError {
        match self.at.checked_sub(1).and_then(|before| self.tokens.get(before)) {
            Some(before) => self.unexpected(&format!("{what} after {}", shown(before))),
            None => self.unexpected(what),
        }
    }

    /// As [`expected`](Self::expected), with a hint if the token may have been meant as a string.
    fn expected_text(&self, what: &str) -> ExpressionError {
        let mut error = self.expected(what);
        let token = self.token();
        let meant = match &token.kind {
            TokenKind::Name(name) => name.as_str(),
            TokenKind::Word if !KEYWORDS.iter().any(|keyword| token.text.eq_ignore_ascii_case(keyword)) => token.text,
            _ => return error,
        };
        if let ExpressionError::Unexpected { found, .. } = &mut error {
            let text = if meant.len() > SHOWN_LEN { "..." } else { meant };
            found.push_str(&format!(": strings are written in single quotes: {}", Literal::Text(text.into())));
        }
        error
    }

    fn unexpected(&self, expected: &str) -> ExpressionError {
        let token = self.token();
        ExpressionError::Unexpected { expected: expected.to_owned(), column: token.column, found: shown(token) }
    }
}

/// Joins the parts; a single part is returned as it is.
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
    if token.kind == TokenKind::End {
        return "the end".to_owned();
    }
    let start: String = token.text.chars().take(SHOWN_LEN).collect();
    let more = if start.len() < token.text.len() { "..." } else { "" };
    // Backslashes and quotes are shown as in the text.
    let start: String = start.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("`{start}{more}`")
}
