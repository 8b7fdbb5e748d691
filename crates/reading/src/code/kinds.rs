//! Which nodes of which grammar mean what. Nodes that no table names are passed through.

use std::sync::OnceLock;

use super::Language;
use crate::facts::SymbolKind;

/// What a node of the syntax tree means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing; its children may.
    Pass,
    /// Nothing, and neither do its children.
    Skip,
    /// A definition.
    Define(SymbolKind),
    /// `impl Type { … }` or `impl Trait for Type { … }`.
    Impl,
    /// A declaration of variables: in some languages it defines functions too.
    Variable,
    /// A parameter or field with a type.
    Typed,
    /// An import or include.
    Import,
    /// `mod name;` or a module with a body.
    Module,
    /// The package of the whole file.
    Package,
    /// A call.
    Call,
    /// The making of a value of a type.
    Construct,
    /// The use of a macro.
    Macro,
    /// A type that is mentioned.
    Mention,
}

use Action::{Call, Construct, Define, Impl, Import, Macro, Mention, Module, Package, Skip, Typed, Variable};
use SymbolKind as Kind;

type Rows = &'static [(&'static str, Action)];

const RUST: Rows = &[
    ("function_item", Define(Kind::Function)),
    ("function_signature_item", Define(Kind::Function)),
    ("macro_definition", Define(Kind::Function)),
    ("struct_item", Define(Kind::Struct)),
    ("union_item", Define(Kind::Struct)),
    ("enum_item", Define(Kind::Enum)),
    ("trait_item", Define(Kind::Trait)),
    ("mod_item", Module),
    ("impl_item", Impl),
    ("use_declaration", Import),
    ("extern_crate_declaration", Import),
    ("call_expression", Call),
    ("macro_invocation", Macro),
    ("struct_expression", Construct),
    ("type_identifier", Mention),
    ("let_declaration", Variable),
    ("parameter", Typed),
    ("field_declaration", Typed),
    ("attribute_item", Skip),
    ("inner_attribute_item", Skip),
];

const PYTHON: Rows = &[
    ("function_definition", Define(Kind::Function)),
    ("class_definition", Define(Kind::Class)),
    ("import_statement", Import),
    ("import_from_statement", Import),
    ("call", Call),
    ("assignment", Variable),
    ("typed_parameter", Typed),
    ("typed_default_parameter", Typed),
];

const JAVASCRIPT: Rows = &[
    ("function_declaration", Define(Kind::Function)),
    ("generator_function_declaration", Define(Kind::Function)),
    ("class_declaration", Define(Kind::Class)),
    ("class", Define(Kind::Class)),
    ("method_definition", Define(Kind::Method)),
    ("variable_declarator", Variable),
    ("field_definition", Variable),
    ("pair", Variable),
    ("import_statement", Import),
    ("export_statement", Import),
    ("call_expression", Call),
    ("new_expression", Construct),
];

const TYPESCRIPT: Rows = &[
    ("function_declaration", Define(Kind::Function)),
    ("generator_function_declaration", Define(Kind::Function)),
    ("class_declaration", Define(Kind::Class)),
    ("abstract_class_declaration", Define(Kind::Class)),
    ("class", Define(Kind::Class)),
    ("interface_declaration", Define(Kind::Interface)),
    ("enum_declaration", Define(Kind::Enum)),
    ("internal_module", Define(Kind::Module)),
    ("module", Define(Kind::Module)),
    ("method_definition", Define(Kind::Method)),
    ("abstract_method_signature", Define(Kind::Method)),
    ("method_signature", Define(Kind::Method)),
    ("variable_declarator", Variable),
    ("public_field_definition", Variable),
    ("pair", Variable),
    ("required_parameter", Typed),
    ("optional_parameter", Typed),
    ("import_statement", Import),
    ("export_statement", Import),
    ("call_expression", Call),
    ("new_expression", Construct),
    ("type_identifier", Mention),
];

const GO: Rows = &[
    ("function_declaration", Define(Kind::Function)),
    ("method_declaration", Define(Kind::Method)),
    ("type_spec", Define(Kind::Struct)),
    ("package_clause", Package),
    ("import_spec", Import),
    ("call_expression", Call),
    ("composite_literal", Construct),
    ("type_identifier", Mention),
    ("short_var_declaration", Variable),
    ("var_spec", Variable),
    ("parameter_declaration", Typed),
    ("field_declaration", Typed),
];

const JAVA: Rows = &[
    ("class_declaration", Define(Kind::Class)),
    ("record_declaration", Define(Kind::Class)),
    ("interface_declaration", Define(Kind::Interface)),
    ("annotation_type_declaration", Define(Kind::Interface)),
    ("enum_declaration", Define(Kind::Enum)),
    ("method_declaration", Define(Kind::Method)),
    ("constructor_declaration", Define(Kind::Method)),
    ("package_declaration", Package),
    ("import_declaration", Import),
    ("method_invocation", Call),
    ("object_creation_expression", Construct),
    ("type_identifier", Mention),
    ("local_variable_declaration", Variable),
    ("field_declaration", Variable),
    ("formal_parameter", Typed),
];

const C: Rows = &[
    ("function_definition", Define(Kind::Function)),
    ("preproc_function_def", Define(Kind::Function)),
    ("struct_specifier", Define(Kind::Struct)),
    ("union_specifier", Define(Kind::Struct)),
    ("enum_specifier", Define(Kind::Enum)),
    ("type_definition", Variable),
    ("preproc_include", Import),
    ("call_expression", Call),
    ("type_identifier", Mention),
    ("declaration", Variable),
    ("parameter_declaration", Typed),
];

const CPP: Rows = &[
    ("function_definition", Define(Kind::Function)),
    ("preproc_function_def", Define(Kind::Function)),
    ("class_specifier", Define(Kind::Class)),
    ("struct_specifier", Define(Kind::Struct)),
    ("union_specifier", Define(Kind::Struct)),
    ("enum_specifier", Define(Kind::Enum)),
    ("namespace_definition", Define(Kind::Module)),
    ("preproc_include", Import),
    ("call_expression", Call),
    ("new_expression", Construct),
    ("type_identifier", Mention),
    ("declaration", Variable),
    ("field_declaration", Variable),
    ("parameter_declaration", Typed),
];

const RUBY: Rows = &[
    ("method", Define(Kind::Method)),
    ("singleton_method", Define(Kind::Method)),
    ("class", Define(Kind::Class)),
    ("module", Define(Kind::Module)),
    ("call", Call),
    ("assignment", Variable),
];

const C_SHARP: Rows = &[
    ("class_declaration", Define(Kind::Class)),
    ("record_declaration", Define(Kind::Class)),
    ("struct_declaration", Define(Kind::Struct)),
    ("record_struct_declaration", Define(Kind::Struct)),
    ("interface_declaration", Define(Kind::Interface)),
    ("enum_declaration", Define(Kind::Enum)),
    ("method_declaration", Define(Kind::Method)),
    ("constructor_declaration", Define(Kind::Method)),
    ("local_function_statement", Define(Kind::Function)),
    ("namespace_declaration", Define(Kind::Module)),
    ("file_scoped_namespace_declaration", Package),
    ("using_directive", Import),
    ("invocation_expression", Call),
    ("object_creation_expression", Construct),
    ("variable_declaration", Variable),
    ("parameter", Typed),
    ("property_declaration", Typed),
];

const fn rows(language: Language) -> Rows {
    match language {
        Language::C => C,
        Language::Cpp => CPP,
        Language::CSharp => C_SHARP,
        Language::Go => GO,
        Language::Java => JAVA,
        Language::JavaScript => JAVASCRIPT,
        Language::Python => PYTHON,
        Language::Ruby => RUBY,
        Language::Rust => RUST,
        Language::TypeScript => TYPESCRIPT,
    }
}

/// A grammar, and what its nodes mean.
pub(super) struct Grammar {
    pub(super) grammar: tree_sitter::Language,
    actions: Vec<Action>,
}

impl Grammar {
    fn new(language: Language, grammar: tree_sitter::Language) -> Self {
        let named = |id: u16| {
            let kind = grammar.node_kind_for_id(id).filter(|_| grammar.node_kind_is_named(id))?;
            let row = rows(language).iter().find(|(name, _)| *name == kind)?;
            Some(row.1)
        };
        let ids = 0..u16::try_from(grammar.node_kind_count()).unwrap_or(u16::MAX);
        let actions = ids.map(|id| named(id).unwrap_or(Action::Pass)).collect();
        Self { grammar, actions }
    }

    pub(super) fn action(&self, kind: u16) -> Action {
        self.actions.get(kind as usize).copied().unwrap_or(Action::Pass)
    }
}

/// The grammar of a language; TypeScript has another one for files with markup in them.
pub(super) fn grammar(language: Language, with_markup: bool) -> &'static Grammar {
    static GRAMMARS: [OnceLock<Grammar>; 11] = [const { OnceLock::new() }; 11];
    let place = match language {
        Language::TypeScript if with_markup => 10,
        _ => Language::ALL.iter().position(|one| *one == language).unwrap_or(0),
    };
    GRAMMARS[place].get_or_init(|| {
        let grammar = match language {
            Language::C => tree_sitter_c::LANGUAGE,
            Language::Cpp => tree_sitter_cpp::LANGUAGE,
            Language::CSharp => tree_sitter_c_sharp::LANGUAGE,
            Language::Go => tree_sitter_go::LANGUAGE,
            Language::Java => tree_sitter_java::LANGUAGE,
            Language::JavaScript => tree_sitter_javascript::LANGUAGE,
            Language::Python => tree_sitter_python::LANGUAGE,
            Language::Ruby => tree_sitter_ruby::LANGUAGE,
            Language::Rust => tree_sitter_rust::LANGUAGE,
            Language::TypeScript if with_markup => tree_sitter_typescript::LANGUAGE_TSX,
            Language::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
        };
        Grammar::new(language, grammar.into())
    })
}
