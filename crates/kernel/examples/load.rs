use libbpf_rs::*;
fn main() {
    libbpf_rs::set_print(Some((PrintLevel::Debug, |l, s| if l != PrintLevel::Debug || std::env::args().nth(2).is_some() { eprint!("{s}") })));
    let path = std::env::args().nth(1).unwrap();
    let mut b = ObjectBuilder::default();
    b.debug(std::env::args().nth(2).is_some());
    let open = b.open_file(path).unwrap();
    let mut obj = open.load().unwrap();
    for m in obj.maps_mut() { println!("{:?} {:?}", m.name(), m.map_type()); }
    for mut m in obj.maps_mut() { if m.name() == "law" { let _l = m.attach_struct_ops().unwrap(); println!("attached"); 
      println!("{}", std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap()); } }
}
