//! The small commands: `translate` and `completions`.

use std::io::{self, Read, Write};

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs, TranslateArgs};
use crate::config;
use crate::error::Error;
use capi_translate::body::{self, Plan};
use capi_translate::target::Target;

/// Size of a read.
const CHUNK: usize = 64 * 1024;

/// Copies a body from standard input to standard output, translated.
pub(crate) fn translate(args: &TranslateArgs) -> Result<(), Error> {
    let rules = config::rules(&args.groups)?;
    let target = Target::parse(&rules, &args.path)?;
    let content_type = Some(args.content_type.as_str());
    let plan = if args.response {
        body::response(&rules, &target, args.status, content_type)?
    } else {
        body::request(&rules, &target, &args.method, content_type)?
    };
    copy(plan, &mut io::stdin().lock(), &mut io::stdout().lock())
}

fn copy(mut plan: Plan, input: &mut impl Read, output: &mut impl Write) -> Result<(), Error> {
    let mut chunk = vec![0; CHUNK];
    let mut out = Vec::new();
    loop {
        let count = input
            .read(&mut chunk)
            .map_err(Error::system("read standard input"))?;
        match &mut plan {
            Plan::Pass => out.extend_from_slice(&chunk[..count]),
            Plan::Translate(translator) if count > 0 => {
                translator.push(&chunk[..count], &mut out)?
            }
            Plan::Translate(translator) => translator.finish(&mut out)?,
        }
        output
            .write_all(&out)
            .and_then(|()| output.flush())
            .map_err(Error::system("write to standard output"))?;
        if count == 0 {
            return Ok(());
        }
        out.clear();
    }
}

/// Prints a completion script.
pub(crate) fn completions(args: &CompletionsArgs) {
    clap_complete::generate(
        args.shell,
        &mut Cli::command(),
        "capi-proxy",
        &mut io::stdout(),
    );
}
