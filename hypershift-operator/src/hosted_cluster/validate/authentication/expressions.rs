//! CEL expressions of an OIDC provider: their syntax, and the variables that they use.
//!
//! The API server of the guest does not start with an expression that it cannot compile, so these are reported before they
//! are rolled out. Types and functions are not checked: they depend on the API server's version.

use std::thread;

use api::hypershift::v1beta1::configuration::authentication::provider::OidcProvider;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr};
use cel::parser::{ParseErrors, Parser};

use super::Problems;

/// The variable of expressions about tokens.
const CLAIMS: &str = "claims";
/// The variable of expressions about users.
const USER: &str = "user";
/// How deeply expressions may be nested, as in the API server.
const MAX_DEPTH: usize = 250;
/// Enough for an expression that is nested that deeply: a worker's own stack is not.
const STACK: usize = 32 << 20;
/// Names of types, and the first parts of such names.
const TYPES: [&str; 14] = [
    "bool",
    "bytes",
    "double",
    "google",
    "int",
    "kubernetes",
    "list",
    "map",
    "net",
    "null_type",
    "optional_type",
    "string",
    "type",
    "uint",
];
/// The first parts of names of functions, for example in `optional.none()`.
const LIBRARIES: [&str; 13] = [
    "base64", "cel", "cidr", "format", "ip", "lists", "math", "optional", "quantity", "regex",
    "semver", "sets", "strings",
];
/// Macros whose first arguments declare variables, as far as the parser does not expand them.
const MACROS: [&str; 12] = [
    "all",
    "bind",
    "exists",
    "existsOne",
    "exists_one",
    "filter",
    "map",
    "optFlatMap",
    "optMap",
    "transformList",
    "transformMap",
    "transformMapEntry",
];

/// An expression of a provider.
struct Expression<'a> {
    /// Its field, within the provider.
    field: String,
    /// The variable that it may use.
    variable: &'static str,
    text: &'a str,
}

/// Problems of all expressions of a provider.
pub(super) fn problems(field: &str, provider: &OidcProvider) -> Problems {
    let all = expressions(provider);
    if all.is_empty() {
        return Problems::new();
    }
    let found = thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(STACK);
        let checked = || all.iter().filter_map(Expression::problem).collect();
        let started = builder.spawn_scoped(scope, checked);
        // Without a thread, the API server's own check is left.
        started.ok().and_then(|thread| thread.join().ok())
    });
    let found: Problems = found.unwrap_or_default();
    found.iter().map(|it| format!("{field}.{it}")).collect()
}

fn expressions(provider: &OidcProvider) -> Vec<Expression<'_>> {
    let mappings = &provider.claim_mappings;
    let groups = mappings.groups.as_ref();
    let uid = mappings.uid.as_ref();
    let mapped = [
        ("username", mappings.username.expression.as_ref()),
        ("groups", groups.and_then(|it| it.expression.as_ref())),
        ("uid", uid.and_then(|it| it.expression.as_ref())),
    ];
    let mapped = mapped.into_iter().filter_map(|(name, text)| {
        let field = format!("claimMappings.{name}.expression");
        Some(Expression::new(field, CLAIMS, text?))
    });
    let extra = mappings.extra.iter().enumerate().map(|(index, extra)| {
        let field = format!("claimMappings.extra[{index}].valueExpression");
        Expression::new(field, CLAIMS, &extra.value_expression)
    });
    let rules = provider.claim_validation_rules.iter().enumerate();
    let rules = rules.filter_map(|(index, rule)| {
        let field = format!("claimValidationRules[{index}].cel.expression");
        Some(Expression::new(
            field,
            CLAIMS,
            &rule.cel.as_ref()?.expression,
        ))
    });
    let users = provider.user_validation_rules.iter().enumerate();
    let users = users.map(|(index, rule)| {
        let field = format!("userValidationRules[{index}].expression");
        Expression::new(field, USER, &rule.expression)
    });
    mapped.chain(extra).chain(rules).chain(users).collect()
}

// === impl Expression ===

impl<'a> Expression<'a> {
    fn new(field: String, variable: &'static str, text: &'a str) -> Self {
        Self {
            field,
            variable,
            text,
        }
    }

    fn problem(&self) -> Option<String> {
        let Self {
            field,
            variable,
            text,
        } = self;
        if depth(text) > MAX_DEPTH {
            return Some(format!(
                "{field} is nested more than {MAX_DEPTH} deep: simplify it"
            ));
        }
        // The parser counts wrongly once its own limit is reached, and panics.
        let parser = Parser::new()
            .max_recursion_depth(u16::MAX)
            .enable_optional_syntax(true);
        match parser.parse(text) {
            Err(errors) => Some(format!(
                "{field} is not a valid CEL expression: {}: correct it",
                first(&errors)
            )),
            Ok(parsed) => unknown(&parsed, &mut vec![*variable]).map(|name| {
                format!("{field} uses {name}, which is not defined: use the variable {variable}")
            }),
        }
    }
}

/// How many brackets are open at most. Those in strings count, too: no such expression has so many.
fn depth(text: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for letter in text.chars() {
        match letter {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// The first error, on one line. Later ones often follow from it.
fn first(errors: &ParseErrors) -> String {
    let Some(error) = errors.errors.first() else {
        return "syntax error".to_owned();
    };
    let (line, column) = error.pos;
    let message = error.msg.lines().next().unwrap_or_default();
    format!("line {line}, column {column}: {message}")
}

/// The first name that nothing defines.
fn unknown<'a>(expression: &'a IdedExpr, scope: &mut Vec<&'a str>) -> Option<&'a str> {
    match &expression.expr {
        Expr::Unspecified | Expr::Literal(_) => None,
        Expr::Ident(name) => (!is_defined(name, scope)).then_some(name.as_str()),
        Expr::Select(select) => unknown(&select.operand, scope),
        Expr::Call(call) => of_call(call, scope),
        Expr::Comprehension(comprehension) => of_comprehension(comprehension, scope),
        Expr::List(list) => list.elements.iter().find_map(|it| unknown(it, scope)),
        Expr::Map(map) => map.entries.iter().find_map(|it| of_entry(it, scope)),
        Expr::Struct(it) => it.entries.iter().find_map(|it| of_entry(it, scope)),
    }
}

fn of_entry<'a>(entry: &'a IdedEntryExpr, scope: &mut Vec<&'a str>) -> Option<&'a str> {
    match &entry.expr {
        EntryExpr::StructField(field) => unknown(&field.value, scope),
        EntryExpr::MapEntry(entry) => {
            unknown(&entry.key, scope).or_else(|| unknown(&entry.value, scope))
        }
    }
}

fn of_call<'a>(call: &'a CallExpr, scope: &mut Vec<&'a str>) -> Option<&'a str> {
    let target = call.target.as_deref();
    let is_value = |it: &&IdedExpr| ident(it).is_none_or(|name| !LIBRARIES.contains(&name));
    if let Some(found) = target.filter(is_value).and_then(|it| unknown(it, scope)) {
        return Some(found);
    }
    let is_macro = target.is_some() && MACROS.contains(&call.func_name.as_str());
    let outer = scope.len();
    if is_macro {
        scope.extend(call.args.iter().map_while(ident));
    }
    let found = call.args.iter().find_map(|it| unknown(it, scope));
    scope.truncate(outer);
    found
}

fn of_comprehension<'a>(it: &'a ComprehensionExpr, scope: &mut Vec<&'a str>) -> Option<&'a str> {
    if let Some(found) = unknown(&it.iter_range, scope) {
        return Some(found);
    }
    let outer = scope.len();
    scope.extend([it.iter_var.as_str(), it.accu_var.as_str()]);
    scope.extend(it.iter_var2.as_deref());
    let parts = [&it.accu_init, &it.loop_cond, &it.loop_step, &it.result];
    let found = parts.into_iter().find_map(|part| unknown(part, scope));
    scope.truncate(outer);
    found
}

/// The name, if the expression is nothing else.
fn ident(expression: &IdedExpr) -> Option<&str> {
    let Expr::Ident(name) = &expression.expr else {
        return None;
    };
    Some(name)
}

fn is_defined(name: &str, scope: &[&str]) -> bool {
    let name = name.strip_prefix('.').unwrap_or(name);
    // The parser's own variables.
    name.starts_with('@') || scope.contains(&name) || TYPES.contains(&name)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    fn problem(variable: &'static str, text: &str) -> Option<String> {
        let expression = Expression::new("expression".to_owned(), variable, text);
        thread::scope(|scope| {
            let builder = thread::Builder::new().stack_size(STACK);
            let thread = builder.spawn_scoped(scope, || expression.problem());
            thread.unwrap().join().unwrap()
        })
    }

    #[test]
    fn valid_expressions_are_accepted() {
        for (variable, text) in [
            (CLAIMS, "claims.sub"),
            (CLAIMS, "claims['urn:custom/name'] + '@example.com'"),
            (CLAIMS, "claims.?email_verified.orValue(false)"),
            (CLAIMS, "claims[?'groups'].orValue([]).map(it, 'sso:' + it)"),
            (
                CLAIMS,
                "has(claims.exp) && claims.exp - claims.nbf <= 86400",
            ),
            (CLAIMS, "claims.roles.exists(role, role in ['a', 'b'])"),
            (
                CLAIMS,
                "claims.?name.optMap(it, it.lowerAscii()).orValue('')",
            ),
            (
                CLAIMS,
                "claims.roles.all(index, role, index < 9 && role != '')",
            ),
            (CLAIMS, "type(claims.roles) == list ? claims.roles : []"),
            (
                CLAIMS,
                "claims.hd == '' ? optional.none() : optional.of(.claims.hd)",
            ),
            (CLAIMS, "{'a': claims.sub, \"b\": r'\\d'}['a']"),
            (USER, "!user.username.startsWith('system:')"),
            (USER, "user.groups.all(group, !group.startsWith('system:'))"),
        ] {
            assert_eq!(problem(variable, text), None, "{text}");
        }
    }

    #[test]
    fn deep_expressions_are_reported() {
        let nested = |depth: usize| format!("{}claims{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(problem(CLAIMS, &nested(MAX_DEPTH)), None);
        let found = problem(CLAIMS, &nested(MAX_DEPTH + 1)).unwrap();
        assert!(found.contains("more than 250 deep"), "{found}");
    }

    #[test]
    fn invalid_expressions_are_reported() {
        for (variable, text, expected) in [
            (
                CLAIMS,
                "claims.sub +",
                "not a valid CEL expression: line 1, column",
            ),
            (
                CLAIMS,
                "claims.sub == 'a",
                "not a valid CEL expression: line 1, column",
            ),
            (
                CLAIMS,
                "(claims.sub",
                "not a valid CEL expression: line 1, column",
            ),
            (
                CLAIMS,
                "claims.",
                "not a valid CEL expression: line 1, column",
            ),
            (CLAIMS, "has(claims)", "not a valid CEL expression: "),
            (
                CLAIMS,
                "claim.sub",
                "uses claim, which is not defined: use the variable claims",
            ),
            (CLAIMS, "sub.startsWith('a')", "uses sub, "),
            (CLAIMS, "user.username", "uses user, "),
            (CLAIMS, "claims.a.map(it, that)", "uses that, "),
            (CLAIMS, "claims.a.map(it, it)[it]", "uses it, "),
            (CLAIMS, "[claims.a, {claims.b: c}]", "uses c, "),
            (
                USER,
                "claims.sub == ''",
                "uses claims, which is not defined: use the variable user",
            ),
        ] {
            let found = problem(variable, text);
            let found = found.unwrap_or_default();
            assert!(found.contains(expected), "{text}: {found:?}");
        }
    }

    /// Users choose them, and the operator works for others, too.
    #[test]
    fn the_longest_expressions_end_soon() {
        let name = |separator: &str| vec!["a"; 512].join(separator);
        for text in [
            "(".repeat(1024),
            "[".repeat(1024),
            "{a:".repeat(341),
            "f(".repeat(512),
            format!("{}a{}", "(".repeat(511), ")".repeat(511)),
            format!("{}a{}", "(".repeat(250), ")".repeat(250)),
            format!("{}a{}", "[".repeat(250), "]".repeat(250)),
            "{a:".repeat(250),
            format!("{}a", "-".repeat(1023)),
            format!("{}a", "!".repeat(1023)),
            name("."),
            name("+"),
            name("?"),
            vec!["a"; 340].join("||"),
            vec!["a?a:a"; 170].join("?"),
            "a?a:".repeat(255),
            "a.map(a,".repeat(128),
            "\u{10ffff}".repeat(1024),
        ] {
            let start = Instant::now();
            problem(CLAIMS, &text);
            let took = start.elapsed();
            assert!(took < Duration::from_secs(5), "{took:?}: {text}");
        }
    }

    proptest! {
        /// A panic would end the operator.
        #[test]
        fn no_expression_ends_the_operator(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "claims", "a", ".", "?", ".?", "[?", "(", ")", "[", "]", "{", "}", ",", ":", "+", "-", "!", "*",
                    "&&", "||", "==", "<", " in ", "'", "\"", "'''", "`", "r'", "b'", "\\", "\\x", "\\u12", "1", "0x",
                    "1u", "1e9", "99999999999999999999", "-9223372036854775808", ".5", " ", "\n", "//", "has(", "map(",
                    "all(", "exists_one(", "filter(", "true", "null", "\u{e9}", "\u{1f600}", "\0", "$",
                ]),
                0..24,
            ),
        ) {
            problem(CLAIMS, &parts.concat());
        }
    }
}
