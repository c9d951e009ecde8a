//! Whether `docs/cli-parity.md` lists what the commands have.

use std::collections::BTreeMap;
use std::fs;

use clap::{Arg, Command, CommandFactory};

use super::{Cli, Hcp};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cli-parity.md");
/// The end of a heading of a table that is not for subcommands of the command.
const ONLY: &str = "` only";
/// Names of the parser's own commands and flags.
const BUILT_IN: [&str; 2] = ["help", "version"];

/// What is said of a command or of a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Yes,
    Ours,
    No,
    Elsewhere,
}

/// A row of the table of commands.
#[derive(Debug)]
struct ListedCommand {
    path: String,
    programs: String,
    state: State,
    remark: String,
}

/// A row of a table of flags.
#[derive(Debug)]
struct ListedFlag {
    /// The command, or the beginning of several unless it ends with [`ONLY`].
    of: String,
    flag: String,
    state: State,
    remark: String,
}

/// The tables of the document.
#[derive(Debug, Default)]
struct Tables {
    commands: Vec<ListedCommand>,
    flags: Vec<ListedFlag>,
}

/// Commands that can be run, by their path: most have no subcommands.
type Leaves = BTreeMap<String, Command>;

// === impl State ===

impl State {
    fn read(text: &str) -> Option<Self> {
        match text {
            "yes" => Some(Self::Yes),
            "ours" => Some(Self::Ours),
            "no" => Some(Self::No),
            "elsewhere" => Some(Self::Elsewhere),
            _ => None,
        }
    }

    fn exists(self) -> bool {
        matches!(self, Self::Yes | Self::Ours)
    }
}

// === impl Tables ===

impl Tables {
    fn read(document: &str) -> Self {
        let mut tables = Self::default();
        let mut of = None;
        let mut is_of_commands = false;
        for line in document.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                (of, is_of_commands) = (None, heading == "Commands");
            } else if let Some(heading) = line.strip_prefix("### ") {
                of = Some(heading.trim_matches('`').to_owned());
            }
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            match (cells.as_slice(), &of) {
                (["", name, programs, state, remark, ""], None)
                    if is_of_commands && name.starts_with('`') =>
                {
                    tables.commands.push(ListedCommand {
                        path: name.trim_matches('`').to_owned(),
                        programs: (*programs).to_owned(),
                        state: State::read(state).expect(line),
                        remark: (*remark).to_owned(),
                    });
                }
                (["", name, state, remark, ""], Some(of)) if name.starts_with("`--") => {
                    tables.flags.push(ListedFlag {
                        of: of.clone(),
                        flag: name.trim_matches('`').trim_start_matches('-').to_owned(),
                        state: State::read(state).expect(line),
                        remark: (*remark).to_owned(),
                    });
                }
                _ => {}
            }
        }
        tables
    }

    /// What the tables say and is not so, or is so and they do not say.
    fn differences(&self, programs: &[(&str, Leaves)]) -> Vec<String> {
        let mut differences = Vec::new();
        for (program, leaves) in programs {
            for (path, command) in leaves {
                let row = self.commands.iter().find(|row| row.path == *path);
                match row {
                    None => differences.push(format!("{program} {path}: it is not listed")),
                    Some(row) if row.state == State::Yes => {
                        self.compare_flags(path, command, &mut differences);
                    }
                    Some(_) => {}
                }
            }
        }
        for row in &self.commands {
            let having = programs
                .iter()
                .filter(|(_, leaves)| leaves.contains_key(&row.path));
            let having: Vec<_> = having.map(|(program, _)| *program).collect();
            let expected = match (row.state, row.programs.as_str()) {
                (State::Elsewhere, _) => continue,
                (_, "both") => programs.iter().map(|(program, _)| *program).collect(),
                (_, "") => Vec::new(),
                (_, one) => vec![one],
            };
            if having != expected || row.state.exists() == expected.is_empty() {
                differences.push(format!("{}: {row:?}, but it is in {having:?}", row.path));
            }
        }
        differences
    }

    fn compare_flags(&self, path: &str, command: &Command, differences: &mut Vec<String>) {
        let rows = || self.flags.iter().filter(|row| is_of(&row.of, path));
        for row in rows().filter(|row| row.state != State::Elsewhere) {
            let exists = flags(command).any(|arg| is_called(arg, &row.flag));
            if exists != row.state.exists() {
                let so = if exists { "exists" } else { "does not exist" };
                differences.push(format!(
                    "{path} --{}: listed as {:?}, but it {so}",
                    row.flag, row.state
                ));
            }
        }
        for arg in flags(command) {
            let listed = rows()
                .any(|row| row.state != State::No && arg.get_long() == Some(row.flag.as_str()));
            if !listed {
                differences.push(format!("{path} --{}: it is not listed", arg.get_id()));
            }
        }
    }
}

/// Whether a table is for a command.
fn is_of(of: &str, path: &str) -> bool {
    if let Some(command) = of.strip_suffix(ONLY) {
        return path == command;
    }
    let rest = path.strip_prefix(of);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// The flags that users see: hidden ones exist to be rejected with an explanation.
fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| {
        let name = arg.get_id().as_str();
        arg.get_long().is_some() && !arg.is_hide_set() && !BUILT_IN.contains(&name)
    })
}

fn is_called(arg: &Arg, name: &str) -> bool {
    let aliases = arg.get_all_aliases().unwrap_or_default();
    arg.get_long() == Some(name) || aliases.contains(&name)
}

/// The commands of a program.
fn leaves(mut command: Command) -> Leaves {
    command.build();
    let mut leaves = Leaves::new();
    add(&command, "", &mut leaves);
    leaves
}

fn add(command: &Command, path: &str, leaves: &mut Leaves) {
    let below = command.get_subcommands();
    let below = below.filter(|command| !BUILT_IN[..1].contains(&command.get_name()));
    let can_run = !command.is_subcommand_required_set();
    for subcommand in below {
        let path = format!("{path} {}", subcommand.get_name());
        add(subcommand, path.trim_start(), leaves);
    }
    if can_run {
        leaves.insert(path.to_owned(), command.clone());
    }
}

#[test]
fn the_document_lists_every_command_and_flag_as_it_is() {
    let document = fs::read_to_string(DOCUMENT).expect("the document can be read");
    let programs = [
        ("hypershift", leaves(Cli::command())),
        ("hcp", leaves(Hcp::command())),
    ];
    let differences = Tables::read(&document).differences(&programs);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn what_is_left_out_has_a_reason() {
    let document = fs::read_to_string(DOCUMENT).expect("the document can be read");
    let tables = Tables::read(&document);
    assert!(tables.commands.len() > 40, "{}", tables.commands.len());
    assert!(tables.flags.len() > 150, "{}", tables.flags.len());
    let commands = tables.commands.iter();
    let commands = commands.map(|row| (row.path.clone(), row.state, &row.remark));
    let flags = tables.flags.iter();
    let flags = flags.map(|row| (format!("{} --{}", row.of, row.flag), row.state, &row.remark));
    for (name, state, remark) in commands.chain(flags) {
        assert!(state != State::No || !remark.is_empty(), "{name}");
    }
}

#[test]
fn differences_are_found() {
    let rows = "## Commands\n\
                | command | programs | state | remark |\n\
                | `a b` | both | yes | |\n\
                | `a c` | one | yes | |\n\
                | `a d` | | no | reason |\n\
                ## Flags\n\
                ### `a`\n\
                | `--there` | yes | |\n\
                | `--old` | yes | an alias |\n\
                ### `a b`\n\
                | `--left-out` | no | reason |\n";
    let flag = |name: &'static str| Arg::new(name).long(name);
    let known = || flag("there").alias("old");
    let program = |commands: Vec<Command>| {
        let group = Command::new("a").subcommand_required(true);
        let root = Command::new("x").subcommand_required(true);
        leaves(root.subcommand(group.subcommands(commands)))
    };
    let b = || Command::new("b").arg(known());
    let c = || Command::new("c").arg(known());
    for (one, two, expected) in [
        (vec![b(), c()], vec![b()], None),
        (vec![b()], vec![b()], Some("a c:")),
        (vec![b(), c()], vec![b(), c()], Some("a c:")),
        (vec![b(), c(), Command::new("d")], vec![b()], Some("a d:")),
        (
            vec![b(), c(), Command::new("e")],
            vec![b()],
            Some("one a e: it is not listed"),
        ),
        (
            vec![b().arg(flag("new")), c()],
            vec![b()],
            Some("a b --new: it is not listed"),
        ),
        (
            vec![b().arg(flag("left-out")), c()],
            vec![b()],
            Some("a b --left-out: listed as No"),
        ),
        (
            vec![b(), Command::new("c")],
            vec![b()],
            Some("a c --there: listed as Yes, but it does not exist"),
        ),
        (
            vec![b().arg(flag("hidden").hide(true)), c()],
            vec![b()],
            None,
        ),
    ] {
        let programs = [("one", program(one)), ("two", program(two))];
        let found = Tables::read(rows).differences(&programs).join("\n");
        match expected {
            Some(part) => assert!(found.contains(part), "{part:?} is not in {found:?}"),
            None => assert_eq!(found, ""),
        }
    }
}
