//! The examples for several nodes say what the program understands.

use std::{collections::BTreeMap, path::Path, process::Command};

use serde_json::Value;

use crate::binary;

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/deploy").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn documents(name: &str) -> Vec<Value> {
    let text = example(name);
    text.split("\n---\n")
        .map(|part| serde_saphyr::from_str(part).unwrap_or_else(|error| panic!("{error}:\n{part}")))
        .collect()
}

/// Every variable of ours is one that the program reads, with a value that it accepts.
fn must_be_understood(variables: &BTreeMap<String, String>) {
    let folder = tempfile::tempdir().unwrap();
    let shown = Command::new(binary())
        .args(["config", "show", "--json"])
        .env("SHELF_DATA_DIR", folder.path())
        .envs(variables)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.status.success(), "{text}{}", String::from_utf8_lossy(&shown.stderr));
    for name in variables.keys().filter(|name| name.starts_with("SHELF_")) {
        assert!(text.contains(name.as_str()), "{name} is not a variable of the program: {text}");
    }
    for (name, start) in [("SHELF_CATALOG", "postgres://"), ("SHELF_OBJECTS", "s3://")] {
        assert!(variables[name].starts_with(start), "{name}");
    }
    for name in ["PGPASSWORD", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
    {
        assert!(variables.contains_key(name), "{name} is missing");
    }
}

/// A value of a compose file, with what example.env says in the place of variables.
fn filled_in(value: &str, given: &BTreeMap<String, String>) -> String {
    let Some((before, rest)) = value.split_once("${") else { return value.to_owned() };
    let (inside, after) = rest.split_once('}').expect("a closing brace");
    let name = inside.split(':').next().unwrap_or(inside);
    let known = given.get(name).unwrap_or_else(|| panic!("{name} is not in example.env"));
    format!("{before}{known}{}", filled_in(after, given))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}"))
}

#[test]
fn the_compose_file_describes_several_nodes_of_one_library() {
    let given: BTreeMap<String, String> = example("example.env")
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let [compose] = &documents("compose.yaml")[..] else { panic!("one document") };
    let services = compose["services"].as_object().expect("services");
    assert_eq!(services["shelf"]["deploy"]["replicas"], 3);
    let variables = services["shelf"]["environment"].as_object().expect("variables");
    let variables =
        variables.iter().map(|(name, value)| (name.clone(), filled_in(text(value), &given))).collect();
    must_be_understood(&variables);
    // Everything that somebody waits for is there, and every volume is declared.
    for (name, service) in services {
        let waits: Vec<String> = match &service["depends_on"] {
            Value::Array(names) => names.iter().map(|name| text(name).to_owned()).collect(),
            Value::Object(names) => names.keys().cloned().collect(),
            _ => Vec::new(),
        };
        assert!(waits.iter().all(|other| services.contains_key(other)), "{name} waits for {waits:?}");
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let source = text(volume).split(':').next().unwrap();
            let is_known = match source.strip_prefix("./") {
                Some(file) => !example(file).is_empty(),
                None => compose["volumes"].as_object().is_some_and(|volumes| volumes.contains_key(source)),
            };
            assert!(is_known, "{name}: {source}");
        }
        assert!(text(&service["image"]).contains(':') || name == "shelf", "{name} has no version");
    }
    let balancer = example("Caddyfile");
    assert!(balancer.contains("dynamic a shelf 7433"), "{balancer}");
}

#[test]
fn the_manifests_describe_several_nodes_of_one_library() {
    let all = documents("kubernetes.yaml");
    let find = |kind: &str, name: &str| {
        let mut found = all.iter().filter(|one| one["kind"] == kind && one["metadata"]["name"] == name);
        found.next().unwrap_or_else(|| panic!("there is no {kind} {name}"))
    };
    let deployment = find("Deployment", "shelf");
    assert_eq!(deployment["spec"]["replicas"], 2);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let mut variables: BTreeMap<String, String> = container["env"]
        .as_array()
        .expect("variables")
        .iter()
        .map(|one| (text(&one["name"]).to_owned(), text(&one["value"]).to_owned()))
        .collect();
    let secret = find("Secret", text(&container["envFrom"][0]["secretRef"]["name"]));
    let secrets = secret["stringData"].as_object().expect("secrets");
    variables.extend(secrets.iter().map(|(name, value)| (name.clone(), text(value).to_owned())));
    must_be_understood(&variables);
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz");
    // Each service leads to pods that there are, and to a port that they have.
    for service in all.iter().filter(|one| one["kind"] == "Service") {
        let app = &service["spec"]["selector"]["app"];
        let pods = all.iter().find(|one| one["spec"]["template"]["metadata"]["labels"]["app"] == *app);
        let pods = pods.unwrap_or_else(|| panic!("nobody answers for {app}"));
        assert_eq!(pods["spec"]["selector"]["matchLabels"]["app"], *app);
        let port = &pods["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"];
        assert_eq!(service["spec"]["ports"][0]["port"], *port, "{app}");
    }
    for host in [&variables["SHELF_CATALOG"], &variables["AWS_ENDPOINT_URL"]] {
        let name = host.split("://").nth(1).unwrap().rsplit('@').next().unwrap();
        find("Service", name.split(['/', ':']).next().unwrap());
    }
}
