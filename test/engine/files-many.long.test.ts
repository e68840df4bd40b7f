import { expect, test } from 'vitest';
import { manifestChanges, readManifest } from '../../src/engine/archive/stored-file.ts';
import { shell, startedContainer, testEngine } from './engine-fixture.ts';

const make = `
import os
for folder in range(100):
    os.makedirs(f'many/{folder}')
    for file in range(1000):
        os.close(os.open(f'many/{folder}/{file}', os.O_CREAT | os.O_WRONLY, 0o644))
`;

/** Milliseconds; only a hang reaches them. */
const timeout = 300_000;

test('100,000 files are read and compared exactly', { timeout }, async () => {
  await using engine = await testEngine();
  await using container = await startedContainer(engine);
  await container.exec({ argv: ['python3', '-c', make], timeoutMs: timeout });
  const before = await readManifest(container.archive('/workspace/many'));
  expect(before.size).toBe(1 + 100 + 100_000);
  await shell(container, 'echo x > many/0/0; rm many/99/999; mv many/7/7 many/7/seven; chmod 600 many/50/5');
  const after = await readManifest(container.archive('/workspace/many'));
  expect(manifestChanges(before, after)).toEqual([
    { path: '0/0', kind: 'modified' },
    { path: '50/5', kind: 'modified' },
    { path: '7/7', kind: 'deleted' },
    { path: '7/seven', kind: 'added' },
    { path: '99/999', kind: 'deleted' },
  ]);
});
