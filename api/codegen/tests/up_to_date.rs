//! What is generated is committed as the types describe it.

#[test]
fn generated_files_are_what_the_types_describe() {
    codegen::check().expect("`cargo xtask codegen` writes them");
}
