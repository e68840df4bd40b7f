import { readFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { randomIndex } from '../../src/stats/repeats.ts';
import { openBrowser } from '../../test/viewer/browser.ts';
import { startServer } from '../service/server-process.ts';
import { printTable } from '../table.ts';
import { fill, type Sizes } from './fill.ts';
import { type MeasuredExport, measureExport } from './measured-export.ts';
import { type MeasuredPage, measureFile, measurePage } from './measured-page.ts';

/**
 * How fast `offsite view` shows a large batch and a large trial in a real Chromium, and how fast and large an
 * export of them is. A page's floor parses the same answer and writes one line; the floor of scrolling is a
 * list of text; the floor of an export compresses the same records.
 * `npm run -s bench -- view [--json] [--quick]`.
 */
const { values } = parseArgs({
  options: { json: { type: 'boolean', default: false }, quick: { type: 'boolean', default: false } },
});
const sizes: Sizes = values.quick
  ? { cases: 125, variants: 2, repeats: 2, entries: 5_000, outputs: 20e6 }
  : { cases: 250, variants: 4, repeats: 2, entries: 20_000, outputs: 200e6 };
const effort = values.quick ? { rounds: 3, scrollMs: 2_000 } : { rounds: 7, scrollMs: 5_000 };
const trials = sizes.cases * sizes.variants * sizes.repeats;

await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-bench-'));
const dataFolder = join(folder.path, 'data');
const pages: MeasuredPage[] = [];
const exports: MeasuredExport[] = [];
await using browser = await openBrowser();

const { batch, trial } = await filled();
const memory = await measurePages();
await measureExports();
const filePaintMs = await measureFile(browser, fileUrl(exports[0]), '.virtual .row');
const result = {
  trials,
  entries: sizes.entries,
  outputMegabytes: sizes.outputs / 1e6,
  paintMs: byName(pages, ({ page, paintMs }) => [page, paintMs]),
  floorPaintMs: byName(pages, ({ page, floorPaintMs }) => [page, floorPaintMs]),
  answerMs: byName(pages, ({ page, answerMs }) => [page, answerMs]),
  answerMegabytes: byName(pages, ({ page, answerMegabytes }) => [page, answerMegabytes]),
  scrolledFrames: byName(pages, ({ page, scrolled }) => [page, scrolled.frames]),
  scrollDroppedFrames: byName(pages, ({ page, scrolled }) => [page, scrolled.dropped]),
  floorDroppedFrames: byName(pages, ({ page, floorScrolled }) => [page, floorScrolled.dropped]),
  frameWorkMs: byName(pages, ({ page, scrolled }) => [page, scrolled.workMs]),
  floorFrameWorkMs: byName(pages, ({ page, floorScrolled }) => [page, floorScrolled.workMs]),
  exportSeconds: byName(exports, (each) => [each.export, each.exportSeconds]),
  floorExportSeconds: byName(exports, (each) => [each.export, each.floorSeconds]),
  exportMegabytes: byName(exports, (each) => [each.export, each.exportMegabytes]),
  exportLeftOut: byName(exports, (each) => [each.export, each.leftOut]),
  exportedFilePaintMs: tenths(filePaintMs),
  serverMegabytes: memory,
};
if (values.json) console.log(JSON.stringify(result, undefined, 2));
else print();

async function filled() {
  using ledger = new Ledger(dataFolder, systemClock);
  const keys = await fill(ledger, sizes, randomIndex(1));
  return { batch: keys.batch, trial: ledger.queue.ofBatch(keys.big)[0]?.key ?? 0 };
}

/**
 * Resolves with the megabytes that are resident in the server: before the first page, at most, at the end.
 */
async function measurePages() {
  await using server = await startServer('../view/viewer-server.ts', dataFolder);
  const { resident: started } = residentMegabytes(server.pid);
  const grid = { path: `/api/batches/${batch}`, wanted: '.virtual .row', scroller: '.scroller' };
  const views = [
    { ...grid, name: 'batch, grid', place: `/batch/${batch}`, rows: sizes.cases },
    { ...grid, name: 'batch, list', place: `/batch/${batch}?view=list`, rows: trials },
    {
      name: 'trial',
      place: `/trial/${trial}`,
      path: `/api/trials/${trial}?`,
      rows: sizes.entries,
      wanted: '.entries .entry',
      scroller: '.entries',
    },
  ];
  for (const view of views) pages.push(await measurePage(browser, server.url, view, effort));
  const { resident: end, peak } = residentMegabytes(server.pid);
  return { started, peak, end };
}

async function measureExports() {
  using ledger = new Ledger(dataFolder, systemClock);
  const to = { folder: folder.path };
  exports.push(
    await measureExport(ledger, { ...to, name: 'batch', id: 'batch_many', withOutputs: false }),
    await measureExport(ledger, { ...to, name: 'trial with outputs', id: 'batch_big', withOutputs: true }),
  );
}

function residentMegabytes(pid: number) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const of = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1000;
  return { resident: tenths(of('VmRSS')), peak: tenths(of('VmHWM')) };
}

function byName<Row>(rows: readonly Row[], entry: (row: Row) => [string, number]): Record<string, number> {
  return Object.fromEntries(rows.map(entry).map(([name, number]) => [name, tenths(number)]));
}

function tenths(number: number): number {
  return Math.round(number * 10) / 10;
}

function fileUrl(exported: MeasuredExport | undefined): string {
  return pathToFileURL(exported?.file ?? '').href;
}

function print(): void {
  const outputs = (sizes.outputs / 1e6).toFixed(0);
  console.log(
    `a batch of ${trials} trials; a trial with ${sizes.entries} entries and ${outputs} MB of outputs`,
  );
  printTable(
    pages.map(({ page, scrolled, floorScrolled, ...each }) => ({
      page,
      'answer MB': tenths(each.answerMegabytes),
      'answer ms': tenths(each.answerMs),
      'paint ms': tenths(each.paintMs),
      'floor ms': tenths(each.floorPaintMs),
      frames: scrolled.frames,
      dropped: scrolled.dropped,
      'floor dropped': floorScrolled.dropped,
      'work ms/frame': tenths(scrolled.workMs),
      'floor work': tenths(floorScrolled.workMs),
    })),
  );
  printTable(
    exports.map(({ export: name, exportSeconds, floorSeconds, exportMegabytes, leftOut }) => ({
      export: name,
      seconds: tenths(exportSeconds),
      'floor s': tenths(floorSeconds),
      MB: tenths(exportMegabytes),
      'left out': leftOut,
    })),
  );
  const { started, peak, end } = memory;
  console.log(`the exported batch paints ${tenths(filePaintMs)} ms after its last byte`);
  console.log(`resident in the server: ${started} MB at its start, ${peak} MB at most, ${end} MB at the end`);
}
