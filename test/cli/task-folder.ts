import type { Place } from './place.ts';

/** The files of a small task of Harbor: write `done` to `out`. `null` leaves one out. */
export function writeHarborTask(place: Place, id: string, files: Record<string, string | null> = {}): void {
  const all: Record<string, string | null> = {
    'task.toml': '[agent]\ntimeout_sec = 60\n[environment]\nmemory_mb = 256\ncpus = 1\n',
    'instruction.md': `Write done to the file out of ${id}. Leave {{this}} as it is.\n`,
    'environment/Dockerfile': 'FROM ubuntu:24.04\nWORKDIR /app\nRUN echo prepared > here\n',
    'tests/test.sh': [
      'echo "the tests look at $(pwd): $(ls)"',
      'if grep -qx done out; then echo 1; else echo 0; fi > /logs/verifier/reward.txt',
    ].join('\n'),
    'solution/solve.sh': 'cp "$(dirname "$0")/answer" out\n',
    'solution/answer': 'done\n',
    ...files,
  };
  for (const [name, content] of Object.entries(all))
    if (content !== null) place.write(`tasks/${id}/${name}`, content);
}

/** `offsite.yaml` for these tasks: their image is that of this machine. */
export function writeTaskConfig(place: Place, run: string): void {
  const config = { advanced: { images: { 'ubuntu:24.04': 'offsite/base' }, pull: 'never' } };
  place.suite({ cases: [], run, config });
}

/** A small task of Terminal-Bench with the same aim. */
export function writeTerminalBenchTask(place: Place, id: string): void {
  const files = {
    'task.yaml': 'instruction: Write done to the file out.\ndifficulty: easy\n',
    'docker-compose.yaml': [
      'services:',
      '  client:',
      '    build: { dockerfile: Dockerfile }',
      '    command: ["sh", "-c", "sleep infinity"]',
      `    environment: ["TEST_DIR=\${T_BENCH_TEST_DIR}"]`,
      '',
    ].join('\n'),
    Dockerfile: 'FROM ubuntu:24.04\nWORKDIR /app\n',
    'run-tests.sh': [
      'echo "=== short test summary info ==="',
      'if cmp -s out $TEST_DIR/expected; then echo PASSED test_out; else echo FAILED test_out; fi',
    ].join('\n'),
    'tests/expected': 'done\n',
    'solution.sh': 'echo done > out\n',
  };
  for (const [name, content] of Object.entries(files)) place.write(`tasks/${id}/${name}`, content);
}
