//! Whether every command and every flag has a help text, in the form that all have.

use std::collections::BTreeMap;

use clap::{Arg, Command, CommandFactory};

use super::{Cli, Hcp};

/// What is wrong with the help of a command and of those below it. `path` is what a user writes.
fn problems(command: &mut Command, path: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let about = text(command.get_about());
    problems.extend(problem_of(&about).map(|problem| format!("{path}: {problem}")));
    let short = in_one_line(&command.render_help().to_string());
    let long = in_one_line(&command.render_long_help().to_string());
    if !short.contains("Usage: ") || !short.contains(&about) || !long.contains("Usage: ") {
        problems.push(format!("{path}: its help is incomplete: {short}"));
    }
    let flags = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let flags = flags.map(|arg| (name_of(arg), text(arg.get_help())));
    problems.extend(problems_of(path, flags.collect()));
    let below = command.get_subcommands().filter(|it| !is_built_in(it));
    let below = below.map(|it| (it.get_name().to_owned(), text(it.get_about())));
    problems.extend(problems_of(path, below.collect()));
    for subcommand in command.get_subcommands_mut() {
        if is_built_in(subcommand) {
            continue;
        }
        let path = format!("{path} {}", subcommand.get_name());
        problems.extend(self::problems(subcommand, &path));
    }
    problems
}

/// What is wrong with texts of one command, which must differ.
fn problems_of(path: &str, texts: Vec<(String, String)>) -> Vec<String> {
    let mut seen = BTreeMap::new();
    let mut problems = Vec::new();
    for (name, text) in texts {
        let problem = problem_of(&text);
        problems.extend(problem.map(|problem| format!("{path} {name}: {problem}")));
        if let Some(other) = seen.insert(text, name.clone()) {
            problems.push(format!("{path} {name}: it has the text of {other}"));
        }
    }
    problems
}

fn problem_of(text: &str) -> Option<String> {
    let Some(begins) = text.chars().next() else {
        return Some("it has no text".to_owned());
    };
    if !begins.is_uppercase() {
        return Some(format!("{text:?} does not begin with a capital letter"));
    }
    let ends = text.ends_with(['.', ' ', ',', ':', ';']);
    ends.then(|| format!("{text:?} ends in punctuation"))
}

/// `help`, below which the parser repeats all commands.
fn is_built_in(command: &Command) -> bool {
    command.get_name() == "help"
}

/// A text that was wrapped.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn text(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}

fn name_of(arg: &Arg) -> String {
    match arg.get_long() {
        Some(long) => format!("--{long}"),
        None => arg.get_id().to_string(),
    }
}

/// The command with those that the parser adds.
fn built(mut command: Command) -> Command {
    command.build();
    command
}

#[test]
fn every_command_and_flag_has_help_in_one_form() {
    for (program, command) in [("hypershift", Cli::command()), ("hcp", Hcp::command())] {
        let found = problems(&mut built(command), program);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

#[test]
fn problems_of_help_are_found() {
    let flag = |name: &'static str, help: &'static str| Arg::new(name).long(name).help(help);
    let hidden = Arg::new("c").long("c").hide(true);
    for (command, expected) in [
        (Command::new("x").about("Do it").arg(flag("a", "A")), None),
        (Command::new("x").about("Do it").arg(hidden), None),
        (
            Command::new("x").about("do it"),
            Some("x: \"do it\" does not begin with a capital letter"),
        ),
        (
            Command::new("x").about("Do it").arg(flag("a", "Ends.")),
            Some("x --a: \"Ends.\" ends in punctuation"),
        ),
        (
            Command::new("x")
                .about("Do it")
                .arg(flag("a", "Same"))
                .arg(flag("b", "Same")),
            Some("x --b: it has the text of --a"),
        ),
        (
            Command::new("x").about("Do it").arg(flag("a", "")),
            Some("x --a: it has no text"),
        ),
        (
            Command::new("x").subcommand(Command::new("y").about("Do that")),
            Some("x: it has no text"),
        ),
    ] {
        let found = problems(&mut built(command), "x").join("\n");
        match expected {
            Some(part) => assert!(found.contains(part), "{part:?} is not in {found:?}"),
            None => assert_eq!(found, ""),
        }
    }
}
