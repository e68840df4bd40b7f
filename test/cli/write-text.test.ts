import { expect, test } from 'vitest';
import { offsiteHere } from './offsite.ts';
import { openPlace } from './place.ts';

test('a file for results that cannot be written is refused before a trial starts', async () => {
  using place = openPlace();
  const suite = place.suite({ cases: [{ id: 'a', verify: 'true' }] });
  const tried = [
    ['--junit', 'out/x/r.xml', 'cannot write out/x/r.xml: there is no folder out/x', 'mkdir -p out/x'],
    ['--html', '/proc', 'cannot write /proc: it is a folder', 'Name a file in it.'],
    // A word in the wrong place would otherwise replace the suite.
    ['--junit', suite, 'it exists, and no report is YAML', 'Name another file.'],
    // Also the superuser cannot create files there.
    [
      '--html',
      '/proc/page.html',
      'cannot write /proc/page.html: no file can be made in /proc',
      'Nothing was started. Name another file.',
    ],
  ];
  for (const [option = '', file = '', message, hint] of tried) {
    const { exitCode, stderr } = await offsiteHere(place, ['run', suite, option, file]);
    expect(exitCode, stderr).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).toContain(hint);
    expect(stderr).not.toContain('batch');
  }
});
