import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { channels } from '../src/bounds/channels.ts';
import { withTable } from '../src/bounds/table.ts';
import { openApiDocument } from '../src/contract/openapi.ts';
import { jsonSchemas } from '../src/suite/json-schemas.ts';
import { keptResults } from './engines/results.ts';
import { withResults, withShortResults } from './engines/results-table.ts';
import { withBlameTable } from './reference/blame-table.ts';
import { referencePages } from './reference/pages.ts';

/**
 * Writes the files that are generated from the code and committed: the editors' JSON Schemas, the OpenAPI
 * document, the tables of bounds and of engines, and the reference of the documents.
 */

const root = new URL('../', import.meta.url);

function write(path: string, text: string): void {
  writeFileSync(new URL(path, root), text);
  console.log(`wrote ${path}`);
}

function writeJson(path: string, document: unknown): void {
  write(path, `${JSON.stringify(document, null, 2)}\n`);
}

mkdirSync(new URL('schemas', root), { recursive: true });
for (const [name, schema] of Object.entries(jsonSchemas())) writeJson(`schemas/${name}`, schema);
writeJson('docs/openapi.json', openApiDocument());

mkdirSync(new URL('docs/reference', root), { recursive: true });
for (const [path, text] of Object.entries(await referencePages())) write(path, text);

const bounds = 'docs/reference/bounds.md';
write(bounds, withTable(readFileSync(new URL(bounds, root), 'utf8'), channels));
const blame = 'docs/reference/blame.md';
write(blame, withBlameTable(readFileSync(new URL(blame, root), 'utf8')));

const results = await keptResults();
for (const [path, change] of [
  ['docs/reference/engine-results.md', withResults],
  ['docs/engines.md', withShortResults],
] as const)
  write(path, change(readFileSync(new URL(path, root), 'utf8'), results));
