import { assert, property, uint8Array } from 'fast-check';
import { expect, test } from 'vitest';
import { nameText } from '../../../src/engine/archive/entries.ts';
import { manifestChanges, readManifest } from '../../../src/engine/archive/stored-file.ts';
import { startedContainer } from '../engine-fixture.ts';
import { engine, sharedEngine } from '../shared-engine.ts';

sharedEngine();

/** The documented way back from a path to the name's bytes. */
function bytesOf(path: string): Buffer {
  const pieces = path.split(/(\\x[0-9a-f]{2})/);
  return Buffer.concat(
    pieces.map((piece, index) =>
      index % 2 === 1 ? Buffer.from([Number.parseInt(piece.slice(2), 16)]) : Buffer.from(piece),
    ),
  );
}

/** Names that a harness may choose, in hex; `/` and NUL are all that Linux forbids. */
const names = [
  'ff',
  'fe',
  'fffe',
  // `é` in Latin-1, in UTF-8, and as a letter and its accent.
  'e9',
  'c3a9',
  '65cc81',
  // Half a surrogate, an overlong slash, a character cut off, a byte order mark.
  'eda080',
  'c0af',
  'e282',
  'efbbbf61',
  // What one would take for an escape: \xff, \x5cxff, and a backslash before a bad byte.
  Buffer.from('\\xff').toString('hex'),
  Buffer.from('\\x5cxff').toString('hex'),
  `${Buffer.from('\\').toString('hex')}ff`,
  // A line end, a terminal's escape sequence, a tab and a bell, quotes, blanks, dashes, dots.
  Buffer.from('two\nlines').toString('hex'),
  Buffer.from('\x1b[31mred\x1b]0;title\x07').toString('hex'),
  Buffer.from('"\'`$(id)`').toString('hex'),
  Buffer.from(' ').toString('hex'),
  Buffer.from('-rf').toString('hex'),
  Buffer.from('--').toString('hex'),
  Buffer.from('...').toString('hex'),
  Buffer.from('C:\\windows').toString('hex'),
  // The longest that Linux takes, of bytes that are no UTF-8.
  'ff'.repeat(255),
];

/** Makes a folder of files (content: the name in hex), a deep one, and a link to a name that is no UTF-8. */
const make = `
import os, sys
os.mkdir(b'names'); os.chdir(b'names')
for name in sys.argv[1:]:
    open(bytes.fromhex(name), 'w').write(name)
os.symlink(b'to\\xff', b'link'); os.link(b'\\xff', b'second\\xff')
os.mkdir(b'folder\\xff'); open(b'folder\\xff/inside', 'w').close()
way = b'deep'
for _ in range(12): way += b'/' + b'\\xfe' * 200
os.makedirs(way); open(way + b'/end', 'w').close()
`;

test('every name is told apart, can be taken back to its bytes, and keeps its content', async () => {
  await using container = await startedContainer(engine);
  await container.exec({ argv: ['python3', '-c', make, ...names], timeoutMs: 60_000 });
  const found = new Map<string, string>();
  const before = await readManifest(container.archive('/workspace/names'), async (entry) => {
    let content = '';
    for await (const chunk of entry.content()) content += chunk.toString();
    found.set(entry.path, entry.linkTarget ?? content);
  });
  for (const name of names) {
    const path = nameText(Buffer.from(name, 'hex'));
    expect(bytesOf(path).toString('hex')).toBe(name);
    // Of a file's two names, the engine tells one as a link to the other.
    expect([name, 'second\\xff'], path).toContain(found.get(path));
  }
  expect(found.get('\\xe9')).toBe('e9');
  expect(found.get('é')).toBe('c3a9');
  expect(found.get('link')).toBe('to\\xff');
  expect(['ff', '\\xff']).toContain(found.get('second\\xff'));
  expect(found.has('folder\\xff/inside')).toBe(true);
  expect(found.has(`deep${`/${'\\xfe'.repeat(200)}`.repeat(12)}/end`)).toBe(true);

  const edit = `open(b'names/\\xfe', 'w').write('edited'); import os; os.rename(b'names/\\xe9', b'names/\\xea')`;
  await container.exec({ argv: ['python3', '-c', edit], timeoutMs: 60_000 });
  const after = await readManifest(container.archive('/workspace/names'));
  expect(manifestChanges(before, after)).toEqual([
    { path: '\\xe9', kind: 'deleted' },
    { path: '\\xea', kind: 'added' },
    { path: '\\xfe', kind: 'modified' },
  ]);
});

test('any bytes at all become a text that leads back to them', () => {
  assert(
    property(uint8Array({ minLength: 1, maxLength: 12 }), (bytes) => {
      expect(bytesOf(nameText(Buffer.from(bytes)))).toEqual(Buffer.from(bytes));
    }),
  );
});

test('a new name with half a character is refused, because two such names become one', async () => {
  await using container = await startedContainer(engine);
  const putting = container.put([{ path: 'half\ud800', content: '' }], '/workspace');
  await expect(putting).rejects.toMatchObject({ code: 'ENGINE_UNSAFE_PATH', kind: 'input' });
});
