import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { jsonSchemas } from '../../src/suite/json-schemas.ts';

test.each(Object.entries(jsonSchemas()))(
  'schemas/%s is what the code reads (else: npm run generate)',
  (name, schema) => {
    const committed = JSON.parse(readFileSync(new URL(`../../schemas/${name}`, import.meta.url), 'utf8'));
    expect(committed).toEqual(JSON.parse(JSON.stringify(schema)));
  },
);
