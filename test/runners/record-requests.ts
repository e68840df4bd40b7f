import { mkdirSync, writeFileSync } from 'node:fs';
import { crc32, deflateSync } from 'node:zlib';
import { runners } from '../../runners/index.ts';
import type { ModelTurn } from './model-server.ts';
import { compactRequest } from './recorded-requests.ts';
import { openRunnerBench } from './runner-bench.ts';

/**
 * Records what the CLIs named as arguments, or all of them, send to a model in each of their wires:
 * `node test/runners/record-requests.ts codex`. Kept is the last request of a conversation, which has all of
 * it: thoughts, parallel calls, a call that fails, an image that a tool shows, and a second message.
 */

/** How each CLI is asked to look at an image. */
const looking: Readonly<
  Record<string, (path: string) => { name: string; arguments: Record<string, unknown> }>
> = {
  'claude-code': (file_path) => ({ name: 'Read', arguments: { file_path } }),
  codex: (path) => ({ name: 'view_image', arguments: { path } }),
  'gemini-cli': (file_path) => ({ name: 'read_file', arguments: { file_path } }),
  opencode: (filePath) => ({ name: 'read', arguments: { filePath } }),
  pi: (path) => ({ name: 'read', arguments: { path } }),
  'qwen-code': (file_path) => ({ name: 'read_file', arguments: { file_path } }),
};

const picture = pngOf(16).toString('base64');

function turnsOf(cli: string): ModelTurn[] {
  const look = looking[cli]?.('/workspace/dot.png');
  return [
    {
      thought: 'I need a file.',
      text: 'I begin.',
      commands: ['echo said > one.txt', `echo ${picture} | base64 -d > dot.png`],
    },
    { thought: 'What is in it?', commands: ['cat missing.txt'], ...(look && { calls: [look] }) },
    { text: 'Done.' },
    { text: 'It is still there.' },
  ];
}

/** A square of one colour. */
function pngOf(size: number): Buffer {
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const ends = [Buffer.alloc(4), Buffer.alloc(4)] as const;
    ends[0].writeUInt32BE(data.length);
    ends[1].writeUInt32BE(crc32(body));
    return Buffer.concat([ends[0], body, ends[1]]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(size, 0);
  head.writeUInt32BE(size, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(size * 3, 0x7f)]);
  const rows = deflateSync(Buffer.concat(Array.from({ length: size }, () => row)));
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([signature, chunk('IHDR', head), chunk('IDAT', rows), chunk('IEND', Buffer.alloc(0))]);
}

const wanted = process.argv.slice(2);
const folder = new URL('fixtures/requests/', import.meta.url);
mkdirSync(folder, { recursive: true });
for (const runner of runners) {
  if (!(runner.name in looking) || (wanted.length > 0 && !wanted.includes(runner.name))) continue;
  await using bench = await openRunnerBench(runner);
  for (const wire of runner.wires === 'any' ? [] : runner.wires) {
    await using sandbox = await bench.sandbox(turnsOf(runner.name), { wire });
    await sandbox.session.turn('Make the file.', sandbox.unhurried);
    await sandbox.session.turn('Is it there?', sandbox.unhurried);
    const asked = (await sandbox.requests()).filter(({ tools }) => Array.isArray(tools) && tools.length > 0);
    const last = asked.at(-1);
    if (!last) throw new Error(`${runner.name} asked for nothing`);
    const file = new URL(`${runner.name}.${wire}.json`, folder);
    writeFileSync(file, `${JSON.stringify(compactRequest(last), null, 1)}\n`);
    console.log(file.pathname);
  }
}
