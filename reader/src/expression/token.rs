//! Splits the text of an expression into tokens. order.md: SUB-3, SUB-4.

use super::ExpressionError;
use super::number::Number;
use super::tree::{Comparison, is_word_character};

/// A token, where it starts, and its text.
#[derive(Clone, Debug)]
pub(super) struct Token<'t> {
    pub(super) kind: TokenKind,
    pub(super) text: &'t str,
    /// In characters, counted from 1.
    pub(super) column: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// A keyword, or a name without quotes.
    Word,
    /// A name in double quotes.
    Name(String),
    /// A string in single quotes.
    Text(Vec<u8>),
    Number(Number),
    Comparison(Comparison),
    Equal,
    Unequal,
    Open,
    Close,
    Comma,
    /// The two dots of a range.
    Range,
    End,
}

/// Longer ones first.
const SYMBOLS: [(&str, TokenKind); 11] = [
    ("==", TokenKind::Equal),
    ("!=", TokenKind::Unequal),
    ("<=", TokenKind::Comparison(Comparison::AtMost)),
    (">=", TokenKind::Comparison(Comparison::AtLeast)),
    ("..", TokenKind::Range),
    ("=", TokenKind::Equal),
    ("<", TokenKind::Comparison(Comparison::Below)),
    (">", TokenKind::Comparison(Comparison::Above)),
    ("(", TokenKind::Open),
    (")", TokenKind::Close),
    (",", TokenKind::Comma),
];

/// The remaining text, and the column at which it starts.
struct Scanner<'t> {
    rest: &'t str,
    column: usize,
}

/// The tokens of a text; the last is [`TokenKind::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, ExpressionError> {
    let mut scanner = Scanner { rest: text, column: 1 };
    let mut tokens = Vec::new();
    loop {
        tokens.push(scanner.next()?);
        if tokens.last().is_some_and(|token| token.kind == TokenKind::End) {
            return Ok(tokens);
        }
    }
}

impl<'t> Scanner<'t> {
    fn next(&mut self) -> Result<Token<'t>, ExpressionError> {
        let blank = self.rest.len() - self.rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
        self.take(blank);
        let column = self.column;
        let (kind, len) = self.token().map_err(|what| ExpressionError::Literal { what, column })?;
        Ok(Token { kind, text: self.take(len), column })
    }

    /// Takes the next `len` bytes, which end at a character boundary.
    fn take(&mut self, len: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(len);
        self.column += taken.chars().count();
        self.rest = rest;
        taken
    }

    /// The token that starts here, and its length.
    fn token(&self) -> Result<(TokenKind, usize), String> {
        let rest = self.rest;
        match rest.chars().next() {
            Some('"') => {
                let (bytes, len) = quoted(rest, '"')?;
                let name = String::from_utf8(bytes).map_err(|_| "name that is not UTF-8".to_owned())?;
                Ok((TokenKind::Name(name), len))
            }
            Some('\'') => quoted(rest, '\'').map(|(bytes, len)| (TokenKind::Text(bytes), len)),
            Some(first) if first.is_ascii_digit() || is_negative_number(rest) => {
                let len = number_len(rest);
                if rest[len..].starts_with(is_word_character) {
                    return Err(format!("number followed by \"{}\"", &rest[len..=len]));
                }
                Number::parse(&rest[..len]).map(|number| (TokenKind::Number(number), len))
            }
            Some(first) if is_word_character(first) => {
                Ok((TokenKind::Word, rest.find(|character| !is_word_character(character)).unwrap_or(rest.len())))
            }
            Some(first) => symbol(rest).ok_or_else(|| unknown(first, rest)),
            None => Ok((TokenKind::End, 0)),
        }
    }
}

fn symbol(rest: &str) -> Option<(TokenKind, usize)> {
    let (text, kind) = SYMBOLS.iter().find(|(text, _)| rest.starts_with(text))?;
    Some((kind.clone(), text.len()))
}

/// The error for an unknown character, with a hint if other languages use it.
fn unknown(character: char, rest: &str) -> String {
    let digits = 1 + rest.bytes().skip(1).take_while(u8::is_ascii_digit).count();
    let meant = match character {
        '&' => " (write `and`)".to_owned(),
        '|' => " (write `or`)".to_owned(),
        '[' | ']' => " (write parentheses)".to_owned(),
        '.' if digits > 1 => format!(" (write 0{})", &rest[..digits]),
        _ => String::new(),
    };
    format!("unknown character \"{}\"{meant}", grainstore_format::escape_bytes(String::from(character).as_bytes()))
}

fn is_negative_number(rest: &str) -> bool {
    rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()))
}

/// Length of the number that a text starts with: sign, digits, fraction, exponent.
fn number_len(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let sign = usize::from(text.starts_with('-'));
    let mut len = sign + digits(sign);
    // `3..7` is a range of two numbers.
    if text[len..].starts_with('.') && digits(len + 1) > 0 {
        len += 1 + digits(len + 1);
    }
    if text[len..].starts_with(['e', 'E']) {
        let signed = len + 1 + usize::from(text[len + 1..].starts_with(['+', '-']));
        if digits(signed) > 0 {
            len = signed + digits(signed);
        }
    }
    len
}

/// The bytes between two quotes, and the length with both.
fn quoted(text: &str, quote: char) -> Result<(Vec<u8>, usize), String> {
    let mut bytes = Vec::new();
    let mut rest = &text[1..];
    loop {
        let plain = rest.find([quote, '\\']).ok_or_else(|| format!("string without a closing {quote}"))?;
        bytes.extend_from_slice(&rest.as_bytes()[..plain]);
        rest = &rest[plain..];
        if rest.starts_with(quote) {
            return Ok((bytes, text.len() - rest.len() + 1));
        }
        rest = &rest[escape(rest, &mut bytes).ok_or("unknown escape in the string")?..];
    }
}

/// Appends the character of the escape at the start of the text; returns the escape's length.
fn escape(text: &str, bytes: &mut Vec<u8>) -> Option<usize> {
    let letter = text[1..].chars().next()?;
    let plain = match letter {
        '\\' | '\'' | '"' => letter,
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'x' => {
            let digits = text.get(2..4).filter(|digits| is_hex(digits))?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            return Some(4);
        }
        'u' => {
            let (digits, _) = text.get(2..)?.strip_prefix('{')?.split_once('}')?;
            let code = u32::from_str_radix(Some(digits).filter(|digits| digits.len() <= 6 && is_hex(digits))?, 16);
            push(bytes, char::from_u32(code.ok()?)?);
            return Some(digits.len() + 4);
        }
        _ => return None,
    };
    push(bytes, plain);
    Some(2)
}

fn push(bytes: &mut Vec<u8>, character: char) {
    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

fn is_hex(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}
