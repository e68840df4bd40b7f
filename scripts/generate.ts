import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { channels } from '../src/bounds/channels.ts';
import { withTable } from '../src/bounds/table.ts';
import { openApiDocument } from '../src/contract/openapi.ts';
import { jsonSchemas } from '../src/suite/json-schemas.ts';

/**
 * Writes the files that are generated from the code and committed: the editors' JSON Schemas, the OpenAPI
 * document and the table of bounds.
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

const page = 'docs/threat-model.md';
write(page, withTable(readFileSync(new URL(page, root), 'utf8'), channels));
