//! Every command line that is shipped or written down parses as the program's own.

use clap::Parser as _;
use spillbox::cli::{Cli, Command};

use super::compose;
use super::files::{below, documents, strings, text, yaml};

/// What the image's entry point gets.
pub(super) fn parse(origin: &str, arguments: &[String]) -> Cli {
    let line = std::iter::once("spillbox".to_owned()).chain(arguments.iter().cloned());
    let cli = Cli::try_parse_from(line).unwrap_or_else(|error| panic!("{origin}: {error}"));
    if let Command::Job(job) = &cli.command {
        let of_job = job
            .command
            .iter()
            .map(|one| one.to_str().unwrap().to_owned());
        parse(origin, &of_job.collect::<Vec<_>>());
    }
    cli
}

/// A line of a shell, unit or document, as its words. Quotes hold words together; what a shell would do beyond that
/// (pipes, redirections) ends the line.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '|' | '>' | '#' | ';' | '&') => break,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The lines of a document's code blocks that call the program, with continued lines joined.
fn lines_of_blocks(page: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut is_code = false;
    let joined = page.replace("\\\n", " ");
    for line in joined.lines() {
        let line = line.trim_start();
        if line.starts_with("```") {
            is_code = !is_code;
        } else if is_code {
            let line = line.trim_start_matches("$ ");
            if line.starts_with("spillbox ") {
                lines.push(line.to_owned());
            }
        }
    }
    lines
}

#[test]
fn the_image_starts_and_checks_itself_with_commands_that_exist() {
    let dockerfile = text("deploy/Dockerfile");
    let mut seen = 0;
    for line in dockerfile.lines() {
        let Some((before, list)) = line.split_once("CMD [") else {
            continue;
        };
        let list: Vec<String> = serde_json::from_str(&format!("[{list}")).unwrap();
        let arguments = if before.is_empty() {
            // After the entry point.
            &list[..]
        } else {
            assert_eq!(list[0], "/usr/bin/spillbox");
            &list[1..]
        };
        let cli = parse(line, arguments);
        if before.is_empty() {
            assert!(matches!(cli.command, Command::Serve(_)), "{line}");
        } else {
            assert!(before.starts_with("HEALTHCHECK"), "{line}");
            assert!(matches!(cli.command, Command::Healthcheck(_)), "{line}");
        }
        seen += 1;
    }
    assert_eq!(seen, 2);
    assert!(dockerfile.contains("ENTRYPOINT [\"/usr/bin/spillbox\"]"));
}

#[test]
fn every_container_runs_a_command_that_exists() {
    let mut seen = 0;
    for (name, service) in compose::services() {
        if compose::is_ours(&service) {
            parse(&name, &compose::command(&service));
            seen += 1;
        }
    }
    assert_eq!(seen, 5);
    for path in below("deploy/k8s/base") {
        for document in documents(&path) {
            for container in super::kubernetes::containers(&document) {
                parse(&path, &strings(&container["args"]));
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 9);
}

#[test]
fn every_unit_runs_a_command_that_exists() {
    let units = below("deploy/systemd");
    let services = units.iter().filter(|path| path.ends_with(".service"));
    for path in services {
        let unit = text(path);
        let line = unit
            .lines()
            .find_map(|line| line.strip_prefix("ExecStart="));
        let line = words(line.unwrap());
        assert_eq!(line[0], "/usr/bin/spillbox", "{path}");
        let cli = parse(path, &line[1..]);
        if !matches!(cli.command, Command::Serve(_)) {
            assert!(unit.contains("SuccessExitStatus=3"), "{path}");
            let timer = path.replace(".service", ".timer");
            assert!(units.contains(&timer), "{timer}");
        }
    }
}

/// Compose, Kubernetes and systemd run the same jobs with the same arguments.
#[test]
fn the_jobs_are_the_same_everywhere() {
    let without_schedule = |arguments: Vec<String>| {
        let begin = arguments.iter().position(|one| one == "--").unwrap();
        arguments[begin + 1..].join(" ")
    };
    let mut of_compose = Vec::new();
    for (_, service) in compose::services() {
        if compose::is_ours(&service) && compose::command(&service)[0] == "job" {
            of_compose.push(without_schedule(compose::command(&service)));
        }
    }
    let mut of_kubernetes = Vec::new();
    for path in below("deploy/k8s/base") {
        for document in documents(&path)
            .iter()
            .filter(|one| one["kind"] == "CronJob")
        {
            let container = super::kubernetes::containers(document).remove(0);
            of_kubernetes.push(without_schedule(strings(&container["args"])));
        }
    }
    let mut of_systemd = Vec::new();
    for path in below("deploy/systemd") {
        let unit = text(&path);
        let line = unit
            .lines()
            .find_map(|line| line.strip_prefix("ExecStart=/usr/bin/spillbox "));
        of_systemd.extend(
            line.filter(|line| !line.starts_with("serve"))
                .map(|line| line.to_owned()),
        );
    }
    for jobs in [&mut of_compose, &mut of_kubernetes, &mut of_systemd] {
        jobs.sort();
        assert_eq!(jobs.len(), 3);
    }
    assert_eq!(of_compose, of_kubernetes);
    assert_eq!(of_compose, of_systemd);
}

#[test]
fn every_command_in_the_documents_parses() {
    let mut seen = 0;
    for path in ["README.md", "docs/OPERATIONS.md"] {
        for line in lines_of_blocks(&text(path)) {
            // A synopsis, not a command.
            if line.contains('…') || line.contains(" [") {
                continue;
            }
            let line = words(&line);
            parse(&format!("{path}: {line:?}"), &line[1..]);
            seen += 1;
        }
    }
    assert!(seen >= 10, "{seen}");
    // The same for the comments of what is shipped.
    for path in [
        "deploy/k8s/overlays/example/kustomization.yaml",
        "deploy/compose/tokens.toml",
    ] {
        assert!(
            text(path).contains("spillbox token hash --generate"),
            "{path}"
        );
    }
    parse(
        "token",
        &words("token hash --generate --name ci --scopes save,read"),
    );
    assert!(yaml("docker-compose.yml").is_object());
}

#[test]
fn lines_are_cut_into_words_as_a_shell_does() {
    assert_eq!(words("a 'b c' \"$D\" e=f | g"), ["a", "b c", "$D", "e=f"]);
    assert_eq!(words("a > b"), ["a"]);
    let page = "spillbox no\n```sh\n$ spillbox a \\\n  b\nother\n```\n";
    assert_eq!(lines_of_blocks(page), ["spillbox a    b"]);
}
