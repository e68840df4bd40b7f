import { mkdirSync, writeFileSync } from 'node:fs';
import { openApiDocument } from '../src/contract/openapi.ts';
import { jsonSchemas } from '../src/suite/json-schemas.ts';

/** Writes what is made from the schemas and committed: the editors' JSON Schemas and the OpenAPI document. */

const root = new URL('../', import.meta.url);

function write(path: string, document: unknown): void {
  writeFileSync(new URL(path, root), `${JSON.stringify(document, null, 2)}\n`);
  console.log(`wrote ${path}`);
}

mkdirSync(new URL('schemas', root), { recursive: true });
for (const [name, schema] of Object.entries(jsonSchemas())) write(`schemas/${name}`, schema);
write('docs/openapi.json', openApiDocument());
