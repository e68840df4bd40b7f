import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { versionOf } from '../base/version.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { listAttempts } from '../ledger/trial-rows.ts';
import { namedBlobs } from '../record/named-blobs.ts';
import type { Redactor } from '../redaction/redactor.ts';
import type { CutLimits } from '../viewer/model/cut-record.ts';
import {
  dataType,
  type ExportedFile,
  fileVersion,
  idOfBlob,
  idOfFile,
  idOfTrial,
} from '../viewer/model/exported-file.ts';
import type { TrialPage, TrialRow } from '../viewer/model/shapes.ts';
import { readBatch } from '../viewer/read/batches.ts';
import { RecordReader } from '../viewer/read/record-reader.ts';
import { readTrial } from '../viewer/read/trial.ts';
import { pageFiles } from '../viewer/server/page-files.ts';
import type { ReadOptions, Write } from './write-export.ts';

export interface HtmlExport extends ReadOptions {
  ledger: Ledger;
  redactor: Redactor;
  /** Epoch milliseconds. */
  now: number;
  /** Bytes of the file, roughly. Trials that do not fit are left out, passed ones first. */
  maxBytes: number;
  signal: AbortSignal;
}

/** Enough to see what happened. */
const cutOutputs: CutLimits = { total: 400_000, least: 100, most: 2_000 };
const wholeOutputs: CutLimits = {
  total: Number.POSITIVE_INFINITY,
  least: Number.POSITIVE_INFINITY,
  most: Number.POSITIVE_INFINITY,
};

const compressed = promisify(gzip);

/**
 * Writes one HTML file that shows a batch as `offsite view` does, without a server and without a network.
 * Resolves with the number of trials that are in it, and of those that were left out for its size.
 */
export async function exportHtml(
  batch: StoredBatch,
  options: HtmlExport,
  write: Write,
): Promise<{ trials: number; leftOut: number }> {
  const { ledger, redactor, only, now, signal } = options;
  const page = readBatch(ledger, batch.key);
  if (!page) throw new Error('the ledger has lost the batch');
  // A record is needed only while its trial is written.
  const reader = new RecordReader(ledger, 0);
  const trials = page.trials.filter(({ verdict }) => !only || (verdict && only.includes(verdict)));
  const file: ExportedFile = {
    version: fileVersion,
    batch: { ...page, trials, exported: { at: now, offsite: versionOf(), machine: machineName() } },
  };
  const texts = await pageTexts();
  await write(beginningOf(redactor.text(batch.suite), texts));
  await write(await element(idOfFile, redactor.json(file)));

  const contents = new Set<string>();
  let left = options.maxBytes;
  let written = 0;
  let leftOut = 0;
  const finished = trials.filter(({ verdict }) => verdict !== undefined);
  for (const trial of finished.toSorted((one, other) => rank(one) - rank(other))) {
    signal.throwIfAborted();
    const { elements, added } = await elementsOf(trial, contents, reader, options);
    const size = elements.reduce((sum, each) => sum + each.length, 0);
    if (size > left) {
      leftOut += 1;
      continue;
    }
    left -= size;
    for (const sha256 of added) contents.add(sha256);
    written += 1;
    for (const each of elements) await write(each);
  }
  await write(endOf(texts));
  return { trials: written, leftOut };
}

function machineName(): string {
  return `${process.platform}/${process.arch}, Node.js ${process.versions.node}`;
}

/** What people look for comes first. */
function rank({ verdict }: TrialRow): number {
  return verdict === 'passed' ? 1 : 0;
}

/** @param contents the blobs that are in the file already */
async function elementsOf(
  { key }: TrialRow,
  contents: ReadonlySet<string>,
  reader: RecordReader,
  { ledger, redactor, withOutputs = false }: HtmlExport,
): Promise<{ elements: string[]; added: Set<string> }> {
  const limits = withOutputs ? wholeOutputs : cutOutputs;
  const kept = listAttempts(ledger.records, key).filter(({ result }) => result !== undefined);
  const elements: string[] = [];
  const added = new Set<string>();
  for (const attempt of [undefined, ...kept.map(({ number }) => number)]) {
    const page = readTrial(ledger, reader, { trial: key, attempt }, limits);
    if (!page) continue;
    elements.push(await element(idOfTrial(key, attempt), redactor.json(page)));
    for (const sha256 of blobsOf(page, withOutputs)) {
      const content =
        contents.has(sha256) || added.has(sha256) ? undefined : ledger.blobs.tryReadClean(sha256);
      if (!content) continue;
      added.add(sha256);
      elements.push(await element(idOfBlob(sha256), redactor.whole(content)));
    }
  }
  return { elements, added };
}

function blobsOf({ found }: TrialPage, withOutputs: boolean): string[] {
  const named = found ? namedBlobs(found.record) : [];
  const always = ['change', 'environment'];
  return named.filter(({ of }) => withOutputs || always.includes(of)).map(({ sha256 }) => sha256);
}

/** Base64 has no character that ends an element. */
async function element(id: string, content: string | Uint8Array): Promise<string> {
  const packed = (await compressed(content)).toString('base64');
  return `<script type="${dataType}" id="${id}">${packed}</script>\n`;
}

interface PageTexts {
  script: string;
  style: string;
}

async function pageTexts(): Promise<PageTexts> {
  const files = await pageFiles();
  const textOf = (name: string) => Buffer.from(files.get(name)?.content ?? '').toString('utf8');
  const [script, style] = [textOf('/file.js'), textOf('/main.css')];
  // Never happens: the bundler escapes these texts.
  if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style))
    throw new Error('the page would end its own element');
  return { script, style };
}

function beginningOf(title: string, { script, style }: PageTexts): string {
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(script)}`,
    `style-src ${hashOf(style)}`,
    'img-src blob: data:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta http-equiv="Content-Security-Policy" content="${policy}" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<meta name="color-scheme" content="light dark" />
<title>${escaped(title)} · Offsite</title>
<style>${style}</style>
</head>
<body>
<div id="app"></div>
<noscript>This file shows a batch with a script of its own. Allow scripts for it.</noscript>
`;
}

function endOf({ script }: PageTexts): string {
  return `<script type="module">${script}</script>\n</body>\n</html>\n`;
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
