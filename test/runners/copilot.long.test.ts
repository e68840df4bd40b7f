import { copilot } from '../../runners/copilot/runner.ts';
import { versions } from '../../runners/versions.ts';
import { programPath } from '../../src/harness/npm-cli.ts';
import { conformance } from './conformance.ts';

conformance(copilot, {
  version: versions.copilot.version,
  garbage: { path: programPath(versions.copilot), program: '#!/bin/sh\necho "Segmentation fault?"\n' },
  tellsUsage: false,
});
