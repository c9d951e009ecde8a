use std::path::Path;

use clap::Parser as _;

use super::*;
use crate::args::{self, Cli};

/// The arguments that the component passes to its program.
const ARGUMENTS: [&str; 5] = [
    "operator",
    "--namespace",
    "clusters-a",
    "--config=/var/run/configmaps/control-plane-pki-operator-config/config.yaml",
    "--terminate-on-files=/var/run/configmaps/control-plane-pki-operator-config/config.yaml",
];

fn parse(program: &str, arguments: &[&str]) -> Result<OperatorArgs, clap::Error> {
    let all = [program].into_iter().chain(arguments.iter().copied());
    let cli = Cli::try_parse_from(args::with_subcommand(all.map(Into::into)))?;
    let args::Command::ControlPlanePkiOperator(args) = cli.command else {
        panic!("another subcommand");
    };
    let Command::Operator(args) = args.command;
    Ok(*args)
}

#[test]
fn the_component_command_line_is_accepted() {
    let text = include_str!("../components/control_plane_pki_operator/assets/deployment.yaml");
    for argument in ARGUMENTS.iter().filter(|it| **it != "clusters-a") {
        assert!(text.contains(argument), "{argument}");
    }
    assert!(text.contains("command: [/usr/bin/control-plane-pki-operator]"));
    let name = "--hosted-control-plane-name=a";
    let arguments: Vec<_> = ARGUMENTS.into_iter().chain([name]).collect();
    let args = parse("/usr/bin/control-plane-pki-operator", &arguments).unwrap();
    assert_eq!(args.namespace, "clusters-a");
    assert_eq!(
        args.config.as_deref(),
        args.terminate_on_files.first().map(PathBuf::as_path)
    );
    assert_eq!(args.cert_rotation_scale, DAY);
    // The same as a subcommand.
    let subcommand: Vec<_> = [PROGRAM].into_iter().chain(arguments).collect();
    assert_eq!(
        parse("/usr/bin/control-plane-operator", &subcommand)
            .unwrap()
            .namespace,
        "clusters-a"
    );
}

#[test]
fn the_rotation_scale_is_a_duration_of_at_most_a_day() {
    for (text, expected) in [
        ("0s", Some(DAY)),
        ("24h0m0s", Some(DAY)),
        ("24h", Some(DAY)),
        ("30m", Some(Duration::from_mins(30))),
        ("1m", Some(Duration::from_mins(1))),
        ("59s", None),
        ("24h1s", None),
        ("-1h", None),
        ("", None),
        ("1", None),
        ("day", None),
    ] {
        assert_eq!(scale(text).ok(), expected, "{text}");
    }
}

#[test]
fn invalid_command_lines_are_rejected() {
    let required = ["operator", "--namespace=a", "--hosted-control-plane-name=a"];
    assert!(parse(PROGRAM, &required).is_ok());
    for bad in [
        vec![],
        vec!["render"],
        vec!["operator", "--hosted-control-plane-name=a"],
        vec!["operator", "--namespace=a"],
        [&required[..], &["--cert-rotation-scale=25h"]].concat(),
        [&required[..], &["--unknown"]].concat(),
    ] {
        assert!(parse(PROGRAM, &bad).is_err(), "{bad:?}");
    }
}

/// Invalid files end the program before it connects anywhere.
#[test]
fn invalid_files_are_usage_errors() {
    let directory = tempfile::tempdir().unwrap();
    let run_with = |path: &Path| {
        let config = format!("--config={}", path.display());
        let args = [
            "operator",
            "--namespace=a",
            "--hosted-control-plane-name=a",
            &config,
        ];
        let operator = parse(PROGRAM, &args).unwrap();
        run(&Args {
            command: Command::Operator(Box::new(operator)),
        })
    };
    let path = directory.path().join("config.yaml");
    for contents in [
        None,
        Some("servingInfo: ["),
        Some("servingInfo: {bindAddress: x}"),
    ] {
        if let Some(contents) = contents {
            std::fs::write(&path, contents).unwrap();
        }
        let error = run_with(&path).unwrap_err();
        assert!(error.is::<Usage>(), "{contents:?}: {error}");
    }
}
