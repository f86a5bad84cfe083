//! The `helenus` program: arguments, configuration, server.

fn main() {
    println!("helenus");
}
