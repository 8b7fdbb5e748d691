//! Citations: the contract's examples, maps of documents, evidence, addresses, and who may see what.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};
use shelf_base::CallContext;
use shelf_engine::{Caller, FileAccess};
use shelf_testkit::{TestLibrary, can_run, error_of};
use shelf_tools::{policy::Selection, resources};

const NOTES: &str = "# Chapter 1\r\n\r\n## Intro\r\n\r\nWelcome here.\r\n\r\n# Chapter 2\r\nEnd";

fn with_notes() -> TestLibrary {
    let library = TestLibrary::new();
    library.ok("add", json!({ "content": NOTES, "name": "notes.md", "resource_id": "notes" }));
    library
}

fn read(reply: &Value) -> Vec<u8> {
    fs::read(reply["output_path"].as_str().unwrap()).unwrap()
}

/// A small PDF with a page for each text, a bookmark for each page, and a link from the first page to the last.
fn pdf(pages: &[&str]) -> Vec<u8> {
    let mut objects: Vec<String> = Vec::new();
    let count = pages.len();
    let page_id = |page: usize| 10 + 3 * page;
    objects.push(format!("1 0 obj\n<< /Type /Catalog /Pages 2 0 R /Outlines 3 0 R /Dests << /end [{} 0 R /Fit] >> >>\nendobj\n", page_id(count - 1)));
    let kids: Vec<String> = (0..count).map(|page| format!("{} 0 R", page_id(page))).collect();
    objects.push(format!(
        "2 0 obj\n<< /Type /Pages /Count {count} /Kids [{}] /MediaBox [0 0 400 600] /Resources << /Font << /F 4 0 R >> >> >>\nendobj\n",
        kids.join(" ")
    ));
    objects.push(format!(
        "3 0 obj\n<< /Type /Outlines /First {} 0 R /Last {} 0 R /Count {count} >>\nendobj\n",
        page_id(0) + 2,
        page_id(count - 1) + 2
    ));
    objects.push("4 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>\nendobj\n".into());
    for (page, text) in pages.iter().enumerate() {
        let id = page_id(page);
        let link = if page == 0 {
            "/Annots [<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A << /S /URI /URI (https://example.org/) >> >>]"
        } else {
            ""
        };
        objects.push(format!(
            "{id} 0 obj\n<< /Type /Page /Parent 2 0 R /Contents {} 0 R {link} >>\nendobj\n",
            id + 1
        ));
        let content = format!("BT /F 20 Tf 40 500 Td ({text}) Tj ET");
        objects.push(format!(
            "{} 0 obj\n<< /Length {} >>\nstream\n{content}\nendstream\nendobj\n",
            id + 1,
            content.len()
        ));
        let next =
            if page + 1 < count { format!("/Next {} 0 R", page_id(page + 1) + 2) } else { String::new() };
        objects.push(format!(
            "{} 0 obj\n<< /Title (Part {}) /Parent 3 0 R /Dest [{id} 0 R /Fit] {next} >>\nendobj\n",
            id + 2,
            page + 1
        ));
    }
    let mut bytes = b"%PDF-1.4\n".to_vec();
    let mut table = String::new();
    let mut ids: Vec<(usize, usize)> = Vec::new();
    for object in &objects {
        let id = object.split(' ').next().unwrap().parse().unwrap();
        ids.push((id, bytes.len()));
        bytes.extend_from_slice(object.as_bytes());
    }
    let start = bytes.len();
    for (id, at) in &ids {
        table.push_str(&format!("{id} 1\n{at:010} 00000 n \n"));
    }
    let trailer = format!(
        "xref\n0 1\n0000000000 65535 f \n{table}trailer\n<< /Size 200 /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    );
    bytes.extend_from_slice(trailer.as_bytes());
    bytes
}

#[test]
fn the_sentences_of_the_contract() {
    let library = TestLibrary::new();
    assert_eq!(library.ok("listResources", json!({})), json!({ "resources": [] }));
    let error = |tool: &str, arguments: Value| error_of(library.call(tool, arguments));
    assert_eq!(
        error("getStructure", json!({ "resource_id": "nonexistent_id" })),
        "Error: No map found for resource 'nonexistent_id'. Expected at: .resource_maps/nonexistent_id.json"
    );
    for tool in ["getNode", "resolve"] {
        let arguments = json!({ "resource_id": "nonexistent", "node_id": "x" });
        assert_eq!(error(tool, arguments), "Error: Resource 'nonexistent' not found.");
    }
    let library = with_notes();
    for tool in ["getNode", "resolve"] {
        let arguments = json!({ "resource_id": "notes", "node_id": "invalid.node" });
        assert_eq!(error_of(library.call(tool, arguments)), "Error: Node 'invalid.node' not found.");
    }
}

#[test]
fn a_text_is_listed_mapped_and_resolved() {
    let library = with_notes();
    library.ok("add", json!({ "content": "x", "name": "a.txt", "resource_id": "another" }));
    assert_eq!(library.ok("listResources", json!({})), json!({ "resources": ["another", "notes"] }));
    let structure = library.ok("getStructure", json!({ "resource_id": "notes" }));
    let keys: Vec<&String> = structure.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["resource_id", "type", "title", "source_path", "nodes", "metadata", "created_at"]);
    assert_eq!((&structure["type"], &structure["source_path"]), (&json!("text"), &json!("notes.md")));
    assert_eq!(structure["metadata"]["source_size"], NOTES.len());
    assert_eq!(structure["metadata"]["source_hash"].as_str().unwrap().len(), 64);
    assert!(structure["created_at"].as_str().unwrap().ends_with('Z'));
    let first = &structure["nodes"][0];
    assert_eq!(first["location"], json!({ "modality": "text", "lines": [1, 5] }));
    assert_eq!(first["children"][0]["id"], "chapter_1.intro");
    let node = library.ok("getNode", json!({ "resource_id": "notes", "node_id": "chapter_1" }));
    assert_eq!(node["children"], json!([{ "id": "chapter_1.intro" }]));
    assert_eq!(node["type"], "section");
    let arguments = json!({ "resource_id": "notes", "node_id": "chapter_1.intro" });
    let resolved = library.ok("resolve", arguments.clone());
    assert_eq!(
        (&resolved["modality"], &resolved["address"], &resolved["resource_id"]),
        (&json!("text"), &json!("text://notes#lines=3-5"), &json!("notes"))
    );
    assert!(resolved["output_path"].as_str().unwrap().ends_with("/notes_chapter_1_intro.md"));
    assert!(Path::new(resolved["output_path"].as_str().unwrap()).is_absolute());
    assert_eq!(read(&resolved), b"## Intro\r\n\r\nWelcome here.\r\n");
    assert!(resolved["node"].get("children").is_none() && resolved.get("exact_address").is_none());
    assert_eq!(
        library.ok("resolve", arguments)["output_path"],
        resolved["output_path"],
        "the same path again"
    );
    let last = library.ok("resolve", json!({ "resource_id": "notes", "node_id": "chapter_2" }));
    assert_eq!(read(&last), b"# Chapter 2\r\nEnd");
    let virtually = json!({ "resource_id": "notes", "node_id": "chapter_2", "virtual": true });
    assert_eq!(library.ok("resolve", virtually)["output_path"], Value::Null);
}

#[test]
fn any_document_is_cited_by_its_id_or_hash() {
    let library = TestLibrary::new();
    let added = library.ok("add", json!({ "content": "One.\n\nTwo.\n", "name": "plain.txt" }));
    let got = library.ok("get", json!({ "name": "plain.txt" }));
    let (id, hash) = (got["document_id"].as_str().unwrap(), got["hash"].as_str().unwrap());
    let _ = added;
    for name in [id, hash] {
        let structure = library.ok("getStructure", json!({ "resource_id": name }));
        assert_eq!((&structure["resource_id"], &structure["nodes"][1]["id"]), (&json!(id), &json!("two")));
    }
    let hit = library.ok("search", json!({ "query": "Two", "type": "keyword" }));
    let address = hit["results"][0]["address"].as_str().unwrap().to_owned();
    let resolved = library.ok("resolve", json!({ "address": address, "include_content": true }));
    assert!(resolved["content"].as_str().unwrap().contains("Two."), "{address} {resolved}");
    // The first version is still there by its hash.
    library.ok("add", json!({ "content": "Other.\n", "name": "plain.txt" }));
    let old = library.ok("resolve", json!({ "resource_id": hash, "node_id": "two" }));
    assert_eq!((read(&old), &old["source_changed"]), (b"Two.\n".to_vec(), &json!(true)));
}

#[test]
fn addresses_resolve_to_the_smallest_node_and_never_outside() {
    let library = with_notes();
    let resolve = |address: &str| library.call("resolve", json!({ "address": address }));
    let found = resolve("text://notes#lines=4-5").unwrap();
    assert_eq!(found["node"]["id"], "chapter_1.intro");
    assert!(found["output_path"].as_str().unwrap().ends_with("/notes_lines_4-5.md"));
    assert_eq!(read(&found), b"\r\nWelcome here.\r\n");
    assert_eq!(resolve("virtual://notes#chapter_2").unwrap()["address"], "text://notes#lines=7-8");
    assert_eq!(read(&resolve("text://notes").unwrap()), NOTES.as_bytes());
    for (address, says) in [
        ("text://notes#lines=8-9", "the text has 8 lines, so there is no line 9"),
        ("text://notes#lines=9-8", "lines 9-8 run backwards"),
        ("doc://notes#pages=1", "cited with text://, not with doc://"),
        ("text://nobody#lines=1", "Resource 'nobody' not found."),
        ("virtual://notes", "names no node"),
        ("nonsense", "must begin with one of"),
    ] {
        let error = error_of(resolve(address));
        assert!(error.starts_with("Error: ") && error.contains(says), "{address}: {error}");
    }
    let both = json!({ "address": "text://notes", "resource_id": "notes" });
    assert!(error_of(library.call("resolve", both)).contains("or address alone"));
    assert!(
        !library
            .path("library")
            .join("evidence")
            .read_dir()
            .unwrap()
            .flatten()
            .any(|entry| { entry.file_name().to_string_lossy().starts_with("part-") })
    );
}

#[test]
fn pages_are_cut_out_of_a_pdf() {
    let library = TestLibrary::new();
    let path = library.write("textbook.pdf", pdf(&["alpha", "beta", "gamma", "delta"]));
    library.ok("add", json!({ "path": path, "resource_id": "textbook" }));
    let structure = library.ok("getStructure", json!({ "resource_id": "textbook" }));
    assert_eq!((&structure["type"], &structure["source_path"]), (&json!("document"), &json!(path)));
    assert_eq!(structure["nodes"][1]["location"], json!({ "modality": "document", "pages": [2] }));
    let resolved = library
        .ok("resolve", json!({ "resource_id": "textbook", "node_id": "part_2", "include_content": true }));
    assert_eq!(resolved["address"], "doc://textbook#pages=2");
    assert!(resolved["output_path"].as_str().unwrap().ends_with("/textbook_part_2.pdf"));
    assert_eq!(resolved["content"], "beta\n");
    let text_of = |bytes: &[u8]| {
        let text = shelf_reading_text(bytes);
        (text.0, text.1)
    };
    assert_eq!(text_of(&read(&resolved)), ("beta\n".into(), 1));
    let range = library.ok("resolve", json!({ "address": "doc://textbook#pages=2-3" }));
    assert_eq!(text_of(&read(&range)), ("beta\ngamma\n".into(), 2));
    let list = library.ok("resolve", json!({ "address": "doc://textbook#pages=1,4" }));
    let bytes = read(&list);
    assert_eq!(text_of(&bytes), ("alpha\ndelta\n".into(), 2));
    assert!(String::from_utf8_lossy(&bytes).contains("https://example.org/"), "links are kept");
    let outside = error_of(library.call("resolve", json!({ "address": "doc://textbook#pages=99" })));
    assert_eq!(outside, "Error: the document has 4 pages, so there is no page 99");
    let hit = library.ok("search", json!({ "query": "gamma", "type": "keyword" }));
    let hit = &hit["results"][0];
    assert_eq!(hit["address"], "doc://textbook#pages=1-4", "one passage of four pages");
    let bbox: Vec<f64> = hit["bbox"].as_array().unwrap().iter().map(|part| part.as_f64().unwrap()).collect();
    // The line of the first page stands 500 of 600 points above its bottom, in letters of 20 points.
    assert!((bbox[0] - 0.1).abs() < 0.01 && (bbox[1] - 0.14).abs() < 0.01, "{bbox:?}");
    assert!(bbox[2] > bbox[0] && (bbox[3] - 0.1733).abs() < 0.01, "{bbox:?}");
}

/// Text and number of pages of a PDF, by adding it to a library.
fn shelf_reading_text(bytes: &[u8]) -> (String, usize) {
    let library = TestLibrary::new();
    let path = library.write("cut.pdf", bytes);
    library.ok("add", json!({ "path": path, "resource_id": "cut" }));
    let nodes =
        library.ok("getStructure", json!({ "resource_id": "cut" }))["nodes"].as_array().unwrap().len();
    let whole = library.ok("resolve", json!({ "address": "doc://cut", "include_content": true }));
    (whole["content"].as_str().unwrap().to_owned(), nodes)
}

#[test]
fn damaged_and_encrypted_documents_give_clear_errors() {
    let library = TestLibrary::new();
    for (name, bytes, says) in [
        ("broken.pdf", b"%PDF-1.4\nnonsense\0".to_vec(), "is damaged"),
        ("locked.docx", [&[0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1][..], &[0; 600]].concat(), ""),
        ("a.zip", b"PK\x03\x04\x14\0\0\0\0\0".to_vec(), "cannot be cited"),
    ] {
        let path = library.write(name, bytes);
        library.ok("add", json!({ "path": path, "resource_id": name }));
        let error = error_of(library.call("getStructure", json!({ "resource_id": name })));
        assert!(error.starts_with("Error: ") && error.contains(says), "{name}: {error}");
    }
}

#[test]
fn other_accounts_see_nothing_and_paths_are_relative() {
    let library = with_notes();
    library.user("alice", false);
    let caller = library.caller("alice");
    assert_eq!(caller.file_access, FileAccess::Configured);
    let as_alice = |tool: &str, arguments: Value| library.call_as(&caller, tool, arguments);
    assert_eq!(as_alice("listResources", json!({})).unwrap(), json!({ "resources": [] }));
    let arguments = json!({ "resource_id": "notes", "node_id": "chapter_1" });
    assert_eq!(error_of(as_alice("resolve", arguments)), "Error: Resource 'notes' not found.");
    as_alice("add", json!({ "content": NOTES, "name": "mine.md", "resource_id": "notes" })).unwrap();
    let resolved = as_alice("resolve", json!({ "resource_id": "notes", "node_id": "chapter_1" })).unwrap();
    assert!(resolved["output_path"].as_str().unwrap().starts_with("evidence/"), "{resolved}");
}

#[test]
fn evidence_is_a_resource_for_those_who_may_resolve() {
    let library = with_notes();
    let (owner, call) = (Caller::owner(), CallContext::new());
    let arguments = json!({ "resource_id": "notes", "node_id": "chapter_2", "include_content": true });
    let resolved = library.ok("resolve", arguments);
    assert_eq!(resolved["content"], "# Chapter 2\r\nEnd");
    let uri = resolved["resource_uri"].as_str().unwrap();
    assert_eq!(uri, "shelf://evidence/text%3A%2F%2Fnotes%23lines%3D7-8");
    let read = |caller: &Caller, uri: &str| {
        resources::read(&library.library, caller, &Selection::default(), uri, &call)
    };
    let found = read(&owner, uri).unwrap().unwrap();
    assert_eq!((found.content.as_str(), found.is_base64), ("# Chapter 2\r\nEnd", false));
    assert!(read(&owner, "shelf://evidence/text%3A%2F%2Fnobody").unwrap().is_none());
    assert!(read(&owner, "shelf://evidence/%zz").unwrap().is_none());
    assert!(read(&owner, "shelf://evidence/text%3A%2F%2Fnotes%23lines%3D99").is_err());
    // A collection token reads documents, and nothing that the policy does not give it.
    let collection = library.collection_of(&owner, "default");
    let (_, token) = library.collection_token(&owner, &collection, "read");
    let limited = library.admit(&token, shelf_engine::Door::Protocol).unwrap();
    assert!(read(&limited, uri).unwrap().is_none());
    for tool in ["listResources", "getStructure", "getNode", "resolve"] {
        let refused =
            error_of(library.call_as(&limited, tool, json!({ "resource_id": "notes", "node_id": "x" })));
        assert_eq!(refused, "Error: Insufficient permissions: PAT required", "{tool}");
    }
}

#[test]
fn maps_of_people_and_models_are_checked() {
    let library = with_notes();
    let (caller, call) = (Caller::owner(), CallContext::new());
    let node = |id: &str, lines: [u32; 2]| json!({ "id": id, "title": id, "type": "section", "location": { "modality": "text", "lines": lines }, "children": [] });
    let mut parent = node("all", [1, 8]);
    parent["children"] = json!([node("all.part", [2, 3])]);
    let map = json!({ "resource_id": "notes", "nodes": [parent] }).to_string();
    let kept = library.library.set_map(&caller, "notes", &map, "model", &call).unwrap();
    assert_eq!((kept.number, kept.nodes), (1, 2));
    let structure = library.ok("getStructure", json!({ "resource_id": "notes" }));
    assert_eq!(structure["nodes"][0]["id"], "all");
    assert_eq!(
        (&structure["metadata"]["map_origin"], &structure["metadata"]["map_version"]),
        (&json!("model"), &json!(1))
    );
    // The document changes: the map still shows what it was made of.
    library.ok("add", json!({ "content": "short\n", "name": "notes.md" }));
    let resolved = library.ok("resolve", json!({ "resource_id": "notes", "node_id": "all.part" }));
    assert_eq!((read(&resolved), &resolved["source_changed"]), (b"\r\n## Intro\r\n".to_vec(), &json!(true)));
    for (nodes, says) in [
        (json!([node("a", [1, 9])]), "no line 9"),
        (json!([node("a", [1, 1]), node("a", [1, 1])]), "same id"),
        (
            json!([{ "id": "a", "title": "a", "type": "b", "location": { "modality": "text" } }]),
            "names no lines",
        ),
        (
            json!([{ "id": "a", "title": "", "type": "b", "location": node("x", [1, 1])["location"], "children": [node("b", [2, 2])] }]),
            "no line 2",
        ),
        (json!([]), "it has no nodes"),
    ] {
        let refused =
            library.library.set_map(&caller, "notes", &nodes.to_string(), "model", &call).unwrap_err();
        assert!(refused.to_string().contains(says), "{refused}");
    }
    library.library.unset_map(&caller, "notes").unwrap();
    assert_eq!(library.ok("getStructure", json!({ "resource_id": "notes" }))["nodes"][0]["id"], "short");
    let elsewhere = json!([{ "id": "v", "title": "v", "type": "section", "location": { "modality": "virtual", "virtual_address": "text://notes#lines=1" } }]);
    library.library.set_map(&caller, "notes", &elsewhere.to_string(), "person", &call).unwrap();
    let resolved = library.ok("resolve", json!({ "resource_id": "notes", "node_id": "v" }));
    assert_eq!((&resolved["address"], read(&resolved)), (&json!("virtual://notes#v"), b"short\n".to_vec()));
    assert!(library.library.check(&call).unwrap().findings.is_empty());
}

#[test]
fn clips_start_and_end_where_they_say() {
    if !can_run("ffmpeg", "-version") {
        return;
    }
    let library = TestLibrary::new();
    for (name, kind, arguments) in [
        (
            "lecture.mp4",
            "video",
            "-f lavfi -i testsrc=size=160x120:rate=25 -f lavfi -i sine=frequency=440 -t 12 -g 50 -c:v libx264 -preset ultrafast -c:a aac",
        ),
        (
            "ahead.mp4",
            "video",
            "-f lavfi -i testsrc=size=160x120:rate=25 -t 12 -g 50 -bf 3 -c:v libx264 -preset fast",
        ),
        ("talk.mp3", "audio", "-f lavfi -i sine=frequency=440 -t 12 -c:a libmp3lame"),
        ("talk.wav", "audio", "-f lavfi -i sine=frequency=440 -t 12"),
        ("talk.flac", "audio", "-f lavfi -i sine=frequency=440 -t 12"),
        (
            "film.webm",
            "video",
            "-f lavfi -i testsrc=size=160x120:rate=25 -t 6 -c:v libvpx -deadline realtime -cpu-used 8",
        ),
        ("film.mkv", "video", "-f lavfi -i testsrc=size=160x120:rate=25 -t 8 -c:v libx264 -preset ultrafast"),
    ] {
        let path = library.path(name);
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-y"]).args(arguments.split(' ')).arg(&path);
        assert!(command.status().unwrap().success(), "{name}");
        library.ok("add", json!({ "path": path, "resource_id": name }));
        let structure = library.ok("getStructure", json!({ "resource_id": name }));
        assert_eq!(structure["type"], kind, "{name}");
        // From a key frame, and from between two.
        for (start, end) in [("2", "4"), ("1.3", "3.75")] {
            let resolved =
                library.ok("resolve", json!({ "address": format!("{kind}://{name}#t={start}-{end}") }));
            let clip = resolved["output_path"].as_str().unwrap();
            let probe = Command::new("ffprobe")
                .args(["-v", "error", "-show_entries", "format=duration,start_time", "-of", "csv=p=0", clip])
                .output()
                .unwrap();
            let shown = String::from_utf8_lossy(&probe.stdout).into_owned();
            let length: f64 = shown.trim().split(',').next_back().unwrap().parse().unwrap();
            let wanted = end.parse::<f64>().unwrap() - start.parse::<f64>().unwrap();
            assert!((length - wanted).abs() <= 0.05, "{name} {start}-{end}: {length} ({shown})");
        }
        let beyond =
            error_of(library.call("resolve", json!({ "address": format!("{kind}://{name}#t=3-99") })));
        assert!(beyond.contains("it does not go on to 99 s"), "{beyond}");
    }
    let exact = library.ok("resolve", json!({ "address": "video://lecture.mp4#t=1.5-4", "virtual": true }));
    assert_eq!(
        (&exact["address"], &exact["exact_address"]),
        (&json!("video://lecture.mp4#t=1-4"), &json!("video://lecture.mp4#t=1.5-4"))
    );
    let broken = library.write("broken.mp4", b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom nothing");
    library.ok("add", json!({ "path": broken, "resource_id": "broken" }));
    let error = error_of(library.call("getStructure", json!({ "resource_id": "broken" })));
    assert!(error.contains("the recording cannot be read"), "{error}");
}

#[test]
fn chapters_and_subtitles_are_nodes() {
    if !can_run("ffmpeg", "-version") {
        return;
    }
    let library = TestLibrary::new();
    let facts = library.write("facts.txt", ";FFMETADATA1\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=4000\ntitle=Opening\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=4000\nEND=10000\ntitle=The rest\n");
    let path = library.path("lecture.mkv");
    let mut command = Command::new("ffmpeg");
    command.args("-v error -y -f lavfi -i testsrc=size=160x120:rate=25 -i".split(' ')).arg(&facts);
    command.args("-map_metadata 1 -t 10 -c:v libx264 -preset ultrafast".split(' ')).arg(&path);
    assert!(command.status().unwrap().success());
    library.write("lecture.srt", "1\n00:00:01,000 --> 00:00:03,000\nHello there.\n");
    library.ok("add", json!({ "path": path, "resource_id": "lecture" }));
    let structure = library.ok("getStructure", json!({ "resource_id": "lecture" }));
    let nodes = &structure["nodes"];
    assert_eq!(nodes[0]["id"], "opening");
    assert_eq!(nodes[0]["location"], json!({ "modality": "video", "start": 0.0, "end": 4.0 }));
    assert_eq!(nodes[0]["children"][0]["id"], "opening.hello_there");
    assert_eq!(nodes[1]["title"], "The rest");
    // Other subtitles give another map.
    library.write("lecture.srt", "1\n00:00:05,000 --> 00:00:07,000\nSomething else.\n");
    library.ok("add", json!({ "path": path }));
    let structure = library.ok("getStructure", json!({ "resource_id": "lecture" }));
    assert_eq!(structure["nodes"][1]["children"][0]["id"], "the_rest.something_else");
}

#[test]
fn images_are_cropped_to_the_pixel() {
    let library = TestLibrary::new();
    // A PNG of 4 × 2 pixels, made by the program that crops: a whole image is given back as it is.
    let bmp: Vec<u8> = bitmap();
    let path = library.write("picture.bmp", &bmp);
    library.ok("add", json!({ "path": path, "resource_id": "picture" }));
    let structure = library.ok("getStructure", json!({ "resource_id": "picture" }));
    assert_eq!((&structure["type"], &structure["nodes"][0]["id"]), (&json!("image"), &json!("image")));
    let whole = library.ok("resolve", json!({ "resource_id": "picture", "node_id": "image" }));
    assert_eq!((read(&whole), &whole["address"]), (bmp, &json!("image://picture#bbox=0,0,1,1")));
    let part = library.ok("resolve", json!({ "address": "image://picture#bbox=0.5,0,1,0.5" }));
    let bytes = read(&part);
    assert!(part["output_path"].as_str().unwrap().ends_with(".png"));
    assert_eq!((&bytes[1..4], &bytes[16..24]), (&b"PNG"[..], &[0, 0, 0, 2, 0, 0, 0, 1][..]));
}

/// A bitmap of 4 × 2 pixels.
fn bitmap() -> Vec<u8> {
    let mut bytes = b"BM".to_vec();
    let pixels: Vec<u8> = (0..24).collect();
    bytes.extend_from_slice(&(54 + pixels.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&54_u32.to_le_bytes());
    for number in [40_u32, 4, 2] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(&[1, 0, 24, 0]);
    bytes.extend_from_slice(&[0; 24]);
    bytes.extend_from_slice(&pixels);
    bytes
}
