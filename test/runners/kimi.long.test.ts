import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { kimi } from '../../runners/kimi/runner.ts';
import { versions } from '../../runners/versions.ts';
import { hostCertificates } from '../../src/api/host-certificates.ts';
import { programPath } from '../../src/harness/npm-cli.ts';
import { ModelConfig } from '../../src/suite/model-config.ts';
import { profileOf } from '../../src/suite/plan.ts';
import { openTrialBench, timeouts } from '../trial/trial-bench.ts';
import { conformance } from './conformance.ts';
import { installPatience, turnPatience } from './runner-bench.ts';

conformance(kimi, {
  version: versions.kimi.version,
  // The protocol has no stable count of tokens.
  tellsUsage: false,
  garbage: { path: programPath(versions.kimi), program: '#!/bin/sh\necho "Segmentation fault?"\n' },
});

test('that does not say that its model fails has a void trial by the model', {
  timeout: installPatience,
}, async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'offsite-kimi-'));
  const file = join(folder.path, 'script.yaml');
  writeFileSync(
    file,
    'turns: [{ run: "echo 1 > made" }, { trouble: { error: { status: 403, message: no such luck } } }]',
  );
  const modelConfig = ModelConfig.parse({ scripted: file });
  const certificates = await hostCertificates({}, process.env);
  await using bench = await openTrialBench({
    ...(certificates && { extraCertificates: certificates.pem }),
    models: { failing: modelConfig },
  });
  const result = await bench.trial(
    '',
    {
      harness: 'kimi',
      model: 'failing',
      modelConfig,
      profile: profileOf({ name: 'plain' }),
      prompt: 'Make it.',
      verify: 'test -f made',
    },
    {
      memory: 3 * 1024 ** 3,
      timeouts: { ...timeouts, install: installPatience, harness: turnPatience },
    },
  );
  expect(result).toMatchObject({ verdict: 'void', cause: { kind: 'model', phase: 'harness' } });
  expect(result.cause?.message).toContain('no such luck');
  expect(result.trajectory).toMatchObject([{ command: 'echo 1 > made', exitCode: 0 }]);
});
