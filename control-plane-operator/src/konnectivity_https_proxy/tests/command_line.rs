//! Flags, and what is missing at the start.

use super::*;

#[test]
fn component_command_lines_are_accepted() {
    let begin = ["control-plane-operator", "konnectivity-https-proxy"];
    for (flags, shown, family) in [
        (vec![], vec![], Family::Any),
        (vec!["run"], vec![], Family::Any),
        (
            vec![
                "run",
                "--connect-directly-to-cloud-apis",
                "--prefer-ipv4=true",
            ],
            vec![],
            Family::Ipv4,
        ),
        (
            vec![
                "run",
                "--serving-port=8092",
                "--connect-directly-to-cloud-apis=true",
            ],
            vec![],
            Family::Any,
        ),
        (
            vec![
                "run",
                "--http-proxy",
                "http://user:secret@proxy.example.com:3128",
                "--https-proxy=https://proxy.example.com",
                "--no-proxy=.svc,.cluster.local,10.0.0.0/16",
            ],
            vec![
                "http://proxy.example.com:3128",
                "https://proxy.example.com:443",
            ],
            Family::Any,
        ),
        (
            vec!["run", "--http-proxy=", "--https-proxy=", "--no-proxy="],
            vec![],
            Family::Any,
        ),
    ] {
        let line: Vec<_> = begin
            .iter()
            .chain(&flags)
            .map(ToString::to_string)
            .collect();
        let args = parse(&line);
        let proxies = proxies(&args).unwrap();
        let read: Vec<_> = proxies
            .http
            .iter()
            .chain(&proxies.https)
            .map(ToString::to_string)
            .collect();
        assert_eq!(read, shown, "{flags:?}");
        assert_eq!(args.konnectivity.family(), family, "{flags:?}");
        assert!(!format!("{args:?}").contains("secret"));
    }
    let line = [
        begin[0],
        begin[1],
        "--https-proxy=socks5://user:secret@proxy",
    ];
    let error = proxies(&parse(&line.map(str::to_owned)))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("--https-proxy: expected http://HOST:PORT"),
        "{error}"
    );
    assert!(!error.contains("secret"), "{error}");
}

#[tokio::test]
async fn errors_at_the_start_name_what_is_missing() {
    let fixture = Fixture::start(&Guest::default()).await;
    let mut line = fixture.command_line("konnectivity-https-proxy", &[]);
    line.retain(|arg| !arg.starts_with("--ca-cert-path"));
    line.push("--ca-cert-path=/missing".to_owned());
    let (_signal, drain) = shutdown::channel();
    let error = serve(&parse(&line), Proxies::default(), drain)
        .await
        .unwrap_err();
    let text = support::error::chain(error.as_ref());
    assert!(
        text.starts_with("failed to read /missing: check the volume mounts"),
        "{text}"
    );
    assert!(!error.is::<Usage>(), "exit code 1");
}
