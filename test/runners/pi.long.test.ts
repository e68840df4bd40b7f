import { pi } from '../../runners/pi/runner.ts';
import { versions } from '../../runners/versions.ts';
import { programPath } from '../../src/harness/npm-cli.ts';
import { conformance } from './conformance.ts';

conformance(pi, {
  version: versions.pi.version,
  garbage: { path: programPath(versions.pi), program: '#!/bin/sh\necho "Segmentation fault?"\n' },
});
