import { expect, test } from 'vitest';
import { bench, sharedBench } from './shared-bench.ts';

/**
 * A process that forks and ends thousands of times a second: whoever lists processes one after the other
 * finds each of them gone. The marker's file is written in place, so that it always has a content.
 */
const hop = (user: string) => `cat > /hop.py << 'END'
import os
${user}
while True:
    if os.fork(): os._exit(0)
    file = os.open('/workspace/result', os.O_WRONLY | os.O_CREAT, 0o666)
    os.pwrite(file, b'spoiled', 0)
    os.close(file)
END
chmod 777 /workspace
(setsid python3 /hop.py > /dev/null 2>&1 &)
until grep -q spoiled result; do sleep 0.02; done 2> /dev/null`;

sharedBench();

test.concurrent.each([
  ['root', ''],
  ['another user', 'os.setgid(1000); os.setuid(1000)'],
])(
  'no process of the harness outlives it, not even one of %s that is never the same for long',
  async (_, user) => {
    const verify = 'echo correct > result; sleep 0.5; cat result';
    const { verifySteps } = await bench.trial(hop(user), { verify });
    expect(verifySteps?.[0]?.output).toBe('correct\n');
  },
);
