import { readFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { median } from '../table.ts';

export interface PageToMeasure {
  name: string;
  /** The place in the viewer, behind `#`. */
  place: string;
  /** The path of the answer with the page's data; undefined for a page that holds its data. */
  path: string | undefined;
  /** The selector of an element that a useful page shows. */
  wanted: string;
  /** The list to scroll. */
  scroller: string;
  /** Rows of that list. */
  rows: number;
}

export interface Scrolled {
  frames: number;
  dropped: number;
  /** Milliseconds of processor time of the page's thread for each frame that it made. */
  workMs: number;
}

export interface MeasuredPage {
  page: string;
  answerMegabytes: number;
  /** Milliseconds from the request to the last byte of its answer. */
  answerMs: number;
  /** Milliseconds from the last byte to the first frame that is useful. */
  paintMs: number;
  floorPaintMs: number;
  scrolled: Scrolled;
  floorScrolled: Scrolled;
}

interface Painted {
  paintMs: number;
  answerMs: number;
}

const source = readFileSync(new URL('in-page.js', import.meta.url), 'utf8');
const viewport = { width: 1280, height: 800 };

/** Loads a page anew `rounds` times, in turns with its floor, then scrolls both. Numbers are medians. */
export async function measurePage(
  browser: Browser,
  viewerUrl: string,
  { name, place, path, wanted, scroller, rows }: PageToMeasure & { path: string },
  { rounds, scrollMs }: { rounds: number; scrollMs: number },
): Promise<MeasuredPage> {
  const { origin, hash } = new URL(viewerUrl);
  const token = hash.slice('#token='.length);
  await using context = await browser.newContext({ viewport });
  const page = await context.newPage();
  const floorPage = await context.newPage();
  await page.goto(viewerUrl);
  await measureIn(page, wanted);
  await measureIn(floorPage);
  await page.goto(`${origin}/#${place}`);

  const painted: Painted[] = [];
  const floors: { paintMs: number; characters: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    // Only the page in front is painted.
    await floorPage.bringToFront();
    await floorPage.goto(`${origin}/floor`);
    floors.push(await floorPage.evaluate(`measure.paintFloor(${JSON.stringify(path)}, '${token}')`));
    await page.bringToFront();
    await page.reload();
    painted.push(await page.evaluate(`measure.paint(${JSON.stringify(path)})`));
  }
  await page.getByText(/^reading \d/).waitFor({ state: 'detached', timeout: 120_000 });
  const scrolled = await scroll(page, `measure.scroll('${scroller}', ${scrollMs})`);
  await floorPage.bringToFront();
  const floorScrolled = await scroll(floorPage, `measure.scrollFloor(${rows}, ${scrollMs})`);
  return {
    page: name,
    answerMegabytes: (floors[0]?.characters ?? 0) / 1e6,
    answerMs: median(painted.map(({ answerMs }) => answerMs)),
    paintMs: median(painted.map(({ paintMs }) => paintMs)),
    floorPaintMs: median(floors.map(({ paintMs }) => paintMs)),
    scrolled,
    floorScrolled,
  };
}

/** Opens an exported file. Returns milliseconds from its last byte to the first frame that is useful. */
export async function measureFile(browser: Browser, url: string, wanted: string): Promise<number> {
  await using context = await browser.newContext({ viewport });
  const page = await context.newPage();
  await measureIn(page, wanted);
  await page.goto(url);
  return ((await page.evaluate('measure.paint()')) as Painted).paintMs;
}

function measureIn(page: Page, wanted?: string) {
  const argument = wanted === undefined ? 'undefined' : JSON.stringify(wanted);
  return page.addInitScript(`{ const wanted = ${argument};\n${source} }`);
}

/** Milliseconds between two frames of a screen with 60 of them a second. */
const frameMs = 1000 / 60;

/** @param script scrolls, and returns the milliseconds between frames */
async function scroll(page: Page, script: string): Promise<Scrolled> {
  const session = await page.context().newCDPSession(page);
  // The thread's own time: other work on the machine does not add to it.
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const worked = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0) * 1_000;
  };
  const before = await worked();
  const gaps: number[] = await page.evaluate(script);
  const workMs = ((await worked()) - before) / gaps.length;
  const all = gaps.reduce((sum, gap) => sum + Math.max(1, Math.round(gap / frameMs)), 0);
  return { frames: all, dropped: all - gaps.length, workMs };
}
