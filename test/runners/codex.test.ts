import { codex } from '../../runners/codex/runner.ts';
import { versions } from '../../runners/versions.ts';
import { programPath } from '../../src/harness/npm-cli.ts';
import { conformance } from './conformance.ts';

conformance(codex, {
  version: versions.codex.version,
  garbage: { path: programPath(versions.codex), program: '#!/bin/sh\necho "Segmentation fault?"\n' },
});
