//! A5, N2: programs that people use reach a granted host with nothing configured but `--net`, and
//! without the grant they do not. The servers are in a test internet.

use belljar_testing::sandboxed;
use serde_json::{Value, json};

use crate::{
    command::{Place, outcome},
    internet::{Internet, inside},
};

fn blocked(result: &Value) -> bool {
    result["logs"].as_array().is_some_and(|lines| {
        lines.iter().any(|line| line.as_str().unwrap_or_default().starts_with("[blocked] network:"))
    })
}

/// Runs a shell script with these commands; once with the host, and once with another one, which has to
/// fail because of that.
fn bash(internet: &Internet, commands: &[&str], host: &str, script: &str) -> Value {
    let commands = commands.iter().flat_map(|name| ["--command", name]);
    let flags = |host| [&["--net", host][..], &commands.clone().collect::<Vec<_>>()].concat();
    let place = Place::new();
    let refused = internet.run(&place, "bash", script, &flags("other.example.com"));
    assert_eq!((&refused["success"], blocked(&refused)), (&json!(false), true), "{refused:#}");
    let granted = internet.run(&place, "bash", script, &flags(host));
    assert_eq!((&granted["success"], blocked(&granted)), (&json!(true), false), "{granted:#}");
    granted
}

/// The same for Python.
fn python(internet: &Internet, host: &str, code: &str, flags: &[&str]) -> Value {
    let place = Place::new();
    let with = |host| [&["--net", host][..], flags].concat();
    let refused = internet.run(&place, "python", code, &with("other.example.com"));
    assert_eq!((&refused["success"], blocked(&refused)), (&json!(false), true), "{refused:#}");
    let granted = internet.run(&place, "python", code, &with(host));
    assert_eq!((&granted["success"], blocked(&granted)), (&json!(true), false), "{granted:#}");
    granted["result"].clone()
}

#[sandboxed]
#[test]
fn n2_curl_speaks_http_in_all_its_forms() {
    inside("network_clients::n2_curl_speaks_http_in_all_its_forms", |internet| {
        let script = "set -e
            for scheme in http https; do
              at=$scheme://web.example.com
              curl -fsS $at/plain; echo
              curl -fsS $at/chunked; echo
              curl -fsS $at/old; echo
              curl -fsS -I $at/head | head -n 1 | tr -d '\\r'
              # Curl asks before it sends as much as this.
              head -c 2000000 /dev/zero > large
              curl -fsS --data-binary @large -H 'Expect: 100-continue' $at/posted; echo
              curl -fsS -T - -H 'Transfer-Encoding: chunked' $at/put < large; echo
              curl -fsS $at/large | wc -c
              # On one connection.
              curl -fsS $at/1 $at/2 $at/3; echo
            done";
        let result = bash(internet, &["curl"], "web.example.com", script);
        let each = "hello from /plain\none two three\nfrom long ago\nHTTP/1.1 200 OK\n2000000 bytes\n\
            2000000 bytes\n8388608\nhello from /1hello from /2hello from /3\n";
        assert_eq!(result["stdout"], each.repeat(2), "{result:#}");
        let requests = internet.requests();
        assert!(requests.iter().all(|one| one.contains("://web.example.com/")), "{requests:?}");
        // A name that no rule allows has reached nobody.
        let names = internet.names();
        let asked = |name: &str| names.iter().any(|asked| asked == name);
        assert_eq!(
            (asked("web.example.com"), asked("other.example.com")),
            (true, false),
            "{names:?}"
        );
    });
}

#[sandboxed]
#[test]
fn n2_a_certificate_that_no_authority_of_this_machine_signed_is_refused() {
    inside(
        "network_clients::n2_a_certificate_that_no_authority_of_this_machine_signed_is_refused",
        |internet| {
            let place = Place::new();
            let mut command = internet.command(&place);
            // The roots that the machine has anyway.
            command.env_remove("SSL_CERT_FILE");
            let script =
                "curl -sS https://web.example.com/; echo $?; curl -sSk https://web.example.com/";
            command.args(["run", "--json", "-l", "bash", "--command", "curl"]);
            command.args(["--net", "web.example.com", "-c", script]);
            let result = outcome(command.output().unwrap()).json();
            assert_eq!(result["stdout"], "60\nhello from /", "{result:#}");
            // The control: with the authority, as other tests have it.
            let flags = ["--net", "web.example.com", "--command", "curl"];
            let trusted = internet.run(&place, "bash", script, &flags);
            assert_eq!(trusted["stdout"], "hello from /0\nhello from /", "{trusted:#}");
        },
    );
}

/// Other contents of the host's files stay there, and a cell cannot change its own file.
#[sandboxed]
#[test]
fn n2_a_cell_has_certificates_only_and_cannot_change_them() {
    inside("network_clients::n2_a_cell_has_certificates_only_and_cannot_change_them", |internet| {
        let place = Place::new();
        let key = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n";
        let roots = format!("{key}{}", internet.authority());
        let roots = place.file("roots.pem", roots);
        let run = |code: &str, flags: &[&str]| {
            let mut command = internet.command(&place);
            command.env("SSL_CERT_FILE", &roots).args(["run", "--json", "-l", "bash", "-c", code]);
            outcome(command.args(flags).output().unwrap()).json()
        };
        let net = ["--net", "web.example.com"];
        let code = "cat $SSL_CERT_FILE
            for change in '>>' '>'; do eval \"echo x $change $SSL_CERT_FILE\" 2>&1 | grep -c 'Permission\\|Read-only'; done
            rm -f $SSL_CERT_FILE; mv $SSL_CERT_FILE /tmp/x; cat /etc/ssl/certs/ca-certificates.crt";
        let result = run(code, &net);
        let bundle = internet.authority().trim().to_owned();
        assert_eq!(result["stdout"], format!("{bundle}\n1\n1\n{bundle}\n"), "{result:#}");
        // A value of the caller's own counts, and a file that the caller grants takes the place of a link.
        let usual = "/etc/ssl/certs/ca-certificates.crt";
        let own = [&net[..], &["--env", "SSL_CERT_FILE=/mine", "--read", usual]].concat();
        let result = run(&format!("echo $SSL_CERT_FILE; cksum < {usual}"), &own);
        let file = std::fs::File::open(usual).unwrap();
        let sum = outcome(place.command("cksum").stdin(file).output().unwrap()).stdout;
        assert_eq!(result["stdout"], format!("/mine\n{sum}"), "{result:#}");
        // Without a host there is no such file.
        let result = run("ls -d /certificates /etc/ssl; echo ${SSL_CERT_FILE-none}", &[]);
        assert_eq!(result["stdout"], "none\n", "{result:#}");
    });
}

#[sandboxed]
#[test]
fn n2_git_clones_fetches_and_pushes() {
    inside("network_clients::n2_git_clones_fetches_and_pushes", |internet| {
        let script = "set -e
            git clone --quiet https://git.example.com/project.git
            cd project
            cat README
            stat -c %s data
            git fetch --quiet origin
            echo more >> README
            git -c user.name=x -c user.email=x@example.com commit --quiet --all --message=second
            git push --quiet origin HEAD:main
            git clone --quiet https://git.example.com/project.git ../again
            tail -n 1 ../again/README";
        let result = bash(internet, &["git"], "git.example.com", script);
        assert_eq!(result["stdout"], "a project\n1048576\nmore\n", "{result:#}");
    });
}

#[sandboxed]
#[test]
fn n2_python_has_urllib_requests_and_httpx() {
    inside("network_clients::n2_python_has_urllib_requests_and_httpx", |internet| {
        let code = "import asyncio, urllib.request
import httpx, requests
at = ['http://web.example.com', 'https://web.example.com']
def plain(url):
    with urllib.request.urlopen(url) as answer:
        return answer.read().decode()
def pooled(url):
    with requests.Session() as session:
        texts = [session.get(url).text for _ in range(3)]
        return [*texts, session.post(url, data=iter([b'x' * 70_000] * 3)).text]
async def many(url):
    async with httpx.AsyncClient() as client:
        answers = await asyncio.gather(*(client.get(f'{url}/{n}') for n in range(40)))
        # More than fits into the queue at once.
        posted = await client.post(url, content=b'x' * 5_000_000)
        return len({answer.text for answer in answers}), posted.text
[[plain(f'{url}/x'), pooled(f'{url}/y'), asyncio.run(many(url))] for url in at]";
        let flags = ["--permissive", "--max-net", "300"];
        let result = python(internet, "web.example.com", code, &flags);
        let pooled = json!(["hello from /y", "hello from /y", "hello from /y", "210000 bytes"]);
        let each = json!(["hello from /x", pooled, [40, "5000000 bytes"]]);
        assert_eq!(result, json!([each, each]));
    });
}

#[sandboxed]
#[test]
fn n2_pip_installs_a_package() {
    inside("network_clients::n2_pip_installs_a_package", |internet| {
        let code = "import sys
from pip._internal.cli.main import main
status = main(['install', '--quiet', '--index-url', 'https://index.example.com/simple',
               '--target', '/work/packages', 'greeting'])
assert status == 0, status
sys.path.insert(0, '/work/packages')
import greeting
greeting.greet()";
        let result = python(internet, "index.example.com", code, &["--permissive"]);
        assert_eq!(result, json!("hello from a package"));
    });
}

#[sandboxed]
#[test]
fn n2_npm_installs_a_package_with_many_dependencies() {
    inside("network_clients::n2_npm_installs_a_package_with_many_dependencies", |internet| {
        let script = "set -e
            # Without the host it would try again for a minute.
            npm install --silent --no-audit --no-fund --fetch-retries 0 \\
              --registry https://registry.example.com greeting
            ls node_modules | wc -l
            node -p 'require(\"greeting\")'";
        let result = bash(internet, &["npm"], "registry.example.com", script);
        assert_eq!(result["stdout"], "41\nhello from npm\n", "{result:#}");
    });
}
