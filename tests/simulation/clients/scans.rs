//! Scans, page by page, while rows and partitions change.

use super::*;

/// Begins a scan, or takes the next page of one that was begun.
pub(super) async fn next_page(world: &Rc<World>, server: &Server) {
    let free: Vec<usize> = {
        let scans = world.scans.borrow();
        (0..scans.len()).filter(|number| !scans[*number].is_busy).collect()
    };
    let number = if free.is_empty() || (world.scans.borrow().len() < 4 && world.chance(300)) {
        let scan = new_scan(world);
        let mut scans = world.scans.borrow_mut();
        scans.push(scan);
        scans.len() - 1
    } else {
        free[usize::try_from(world.below(free.len() as u64)).unwrap()]
    };
    page(world, server, number).await;
}

fn new_scan(world: &World) -> Scan {
    let (text, covers): (String, Box<dyn Fn(i32) -> bool>) = match world.below(3) {
        0 => {
            let k = place(world).0;
            (
                format!("SELECT k, c, v FROM t WHERE k = {k}"),
                Box::new(move |of| of == k),
            )
        }
        1 => {
            let from = token(place(world).0);
            (
                format!("SELECT k, c, v FROM t WHERE token(k) >= {from}"),
                Box::new(move |of| token(of) >= from),
            )
        }
        _ => ("SELECT k, c, v FROM t".to_owned(), Box::new(|_| true)),
    };
    Scan {
        number: world.number().unsigned_abs(),
        text,
        covers,
        page_rows: u32::try_from(1 + world.below(7)).unwrap(),
        state: None,
        seen: Vec::new(),
        floors: floors(world),
        epoch: world.epoch(),
        run: world.run.get(),
        is_busy: false,
    }
}

/// A scan whose page is being requested; free again whatever happens.
struct Busy<'a>(&'a World, u64);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        for scan in self
            .0
            .scans
            .borrow_mut()
            .iter_mut()
            .filter(|scan| scan.number == self.1)
        {
            scan.is_busy = false;
        }
    }
}

async fn page(world: &Rc<World>, server: &Server, place: usize) {
    let (number, text, params) = {
        let mut scans = world.scans.borrow_mut();
        let scan = &mut scans[place];
        scan.is_busy = true;
        let params = QueryParams {
            page_size_rows: Some(scan.page_rows),
            paging_state: scan.state.clone(),
            ..QueryParams::default()
        };
        (scan.number, scan.text.clone(), params)
    };
    let busy = Busy(world, number);
    let floors = floors(world);
    let in_work = world.enter("read");
    let outcome = server.ask(world, &text, params).await;
    if world.epoch() > in_work.epoch {
        world.mark(Mark::StaleRoute);
    }
    drop(in_work);
    let Outcome::Done(lines, state) = outcome else {
        if let Outcome::Refused(why) = outcome
            && why.contains("paging state")
        {
            world.fail("t", format!("a paging state is refused: {why}"));
        }
        return;
    };
    drop(busy);
    let mut scans = world.scans.borrow_mut();
    let Some(place) = scans.iter().position(|scan| scan.number == number) else {
        return;
    };
    let scan = &mut scans[place];
    if scan.state.is_some() {
        if scan.epoch != world.epoch() {
            world.mark(Mark::PageOverSplit);
        }
        if scan.run != world.run.get() {
            world.mark(Mark::PageOverCrash);
        }
    }
    for line in &lines {
        let Some((k, c, v)) = row_of(line) else { continue };
        let here = (token(k), k, c);
        if scan.seen.last().is_some_and(|last| *last >= here) {
            world.fail("t", format!("row ({k}, {c}) stands out of order, or twice, in pages"));
        }
        scan.seen.push(here);
        let floor = floors.get(&(k, c)).copied().unwrap_or_default();
        let checked = world.rows.borrow_mut().entry((k, c)).or_default().check(floor, Some(v));
        world.check("t", checked.map_err(|what| format!("row ({k}, {c}) in pages: {what}")));
    }
    scan.state = state;
    if scan.state.is_some() {
        return;
    }
    let scan = scans.swap_remove(place);
    let seen: BTreeSet<(i32, i32)> = scan.seen.iter().map(|(_, k, c)| (*k, *c)).collect();
    for (row, floor) in &scan.floors {
        if (scan.covers)(row.0) && !seen.contains(row) {
            let checked = world.rows.borrow_mut().entry(*row).or_default().check(*floor, None);
            world.check(
                "t",
                checked.map_err(|what| format!("row {row:?} is not in the pages of a scan: {what}")),
            );
        }
    }
}

/// Reads all scans to their ends.
pub(crate) async fn finish_scans(world: &Rc<World>, runner: &mut Runner, server: &Rc<Server>) {
    let (of_world, of_server) = (Rc::clone(world), Rc::clone(server));
    runner.spawn("scans".to_owned(), async move {
        while !of_world.scans.borrow().is_empty() && of_world.failure().is_none() {
            page(&of_world, &of_server, 0).await;
        }
    });
    rest(world, runner).await;
}
