import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { findCli } from '../../src/engine/build/find-builder.ts';
import { connectEngine } from '../../src/engine/connect.ts';
import { engineSocket } from '../engine/engine-socket.ts';
import { needs } from '../needs.ts';

const asked = spawnSync('docker', ['buildx', 'version'], { encoding: 'utf8' });
const why = asked.error?.message ?? asked.stderr.trim().split('\n')[0];

needs(asked.status === 0, `docker buildx: ${why}`).test(
  'docker buildx builds with mounts and modes, whatever builder the user has chosen',
  { timeout: 120_000 },
  async () => {
    await using engine = await connectEngine({
      instance: `test-${crypto.randomUUID()}`,
      env: { ...process.env, BUILDX_BUILDER: 'nobody-has-this' },
    });
    const { kind, build } = await engine.builder();
    expect(kind).toBe('buildkit');
    const cli = await findCli(`unix://${engineSocket}`, process.env);
    expect(cli?.build.slice(0, 2)).toEqual(['buildx', 'build']);
    const folder = mkdtempSync(join(tmpdir(), 'offsite-buildx-'));
    writeFileSync(join(folder, 'file'), 'x');
    const name = `offsite-test/${crypto.randomUUID()}:latest`;
    const output: string[] = [];
    try {
      await build({
        name,
        labels: { 'offsite.test': 'buildx' },
        target: undefined,
        args: {},
        proxies: {},
        dockerfile:
          'FROM offsite/base\nRUN --mount=type=bind,target=/context --mount=type=tmpfs,target=/scratch ' +
          'cp /context/file /copied\nCOPY --chmod=741 file /moded\nRUN stat -c %a /moded && cat /copied\n',
        context: { folder, ignore: '', members: [] },
        secret: undefined,
        timeoutMs: 60_000,
        onOutput: (text) => void output.push(text),
        signal: AbortSignal.timeout(100_000),
      });
      expect(output.join('')).toMatch(/741\n/);
      expect((await engine.findImage(name))?.labels).toMatchObject({ 'offsite.test': 'buildx' });
    } finally {
      await engine.port.remove('image', name);
      rmSync(folder, { recursive: true });
    }
  },
);
