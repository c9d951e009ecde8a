//! What is generated is committed as the types describe it.

#[test]
fn generated_files_match_the_types() {
    codegen::check().expect("`cargo xtask codegen` writes them");
}
