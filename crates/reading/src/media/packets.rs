//! The packets of a copied clip: from their times follows what the clip shows.

use super::cut::TOLERANCE;

/// Microseconds that a time may be off by rounding.
const ROUNDING: i64 = 2_000;

/// When a packet is shown, in microseconds of the clip, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    start: i64,
    length: i64,
}

impl Packet {
    const fn end(self) -> i64 {
        self.start.saturating_add(self.length)
    }
}

/// The packets of up to two streams, each in the order in which they are shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Copied {
    streams: [Vec<Packet>; 2],
}

impl Copied {
    /// Reads lines such as `0, 512, 1024, 512, 2048, 0x1a2b3c4d`: the first number is the stream, the third the time of
    /// a packet and the fourth its length, in the unit that a line such as `#tb 0: 1/12800` gives.
    pub(super) fn read(list: &str) -> Option<Self> {
        let mut copied = Self::default();
        let mut units: [Option<(i64, i64)>; 2] = [None; 2];
        for line in list.lines() {
            if let Some((stream, unit)) = line.strip_prefix("#tb ").and_then(|unit| unit.split_once(": ")) {
                let (numerator, denominator) = unit.trim().split_once('/')?;
                let unit = (numerator.parse().ok()?, denominator.parse().ok()?);
                *units.get_mut(stream.parse::<usize>().ok()?)? = Some(unit);
            }
            if line.starts_with('#') {
                continue;
            }
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            let [stream, _, start, length, ..] = fields.as_slice() else { continue };
            let stream = stream.parse::<usize>().ok()?;
            let (numerator, denominator) = (*units.get(stream)?)?;
            let micros = |time: &str| {
                let millionths = i128::from(time.parse::<i64>().ok()?) * i128::from(numerator) * 1_000_000;
                i64::try_from(millionths.checked_div_euclid(denominator.into())?).ok()
            };
            let packet = Packet { start: micros(start)?, length: micros(length)? };
            copied.streams.get_mut(stream)?.push(packet);
        }
        copied.streams.iter_mut().for_each(|packets| packets.sort_unstable());
        Some(copied)
    }

    /// Whether sound begins where it should and is as long as it should be, in microseconds.
    pub(super) fn is_sound(&self, length: u64) -> bool {
        let [packets, _] = &self.streams;
        let (Some(first), Some(last)) = (packets.first(), packets.last()) else { return false };
        near(first.start, 0) && near(last.end().saturating_sub(first.start), micros(length))
    }

    /// Whether a film begins where it should, shows every frame up to its end and none after it, and has its sound for
    /// just as long. Forms other than MP4 begin with their first packet, whatever its time is.
    pub(super) fn is_film(&self, length: u64, has_sound: bool, is_mp4: bool) -> bool {
        let [frames, sound] = &self.streams;
        let (Some(first), Some(last)) = (frames.first(), frames.last()) else { return false };
        let zero = match sound.first() {
            Some(heard) if !is_mp4 => first.start.min(heard.start),
            _ if !is_mp4 => first.start,
            _ => 0,
        };
        let end = zero.saturating_add(micros(length));
        // A frame stays until the next one; one that is missing leaves a hole.
        let is_whole = frames.windows(2).all(|pair| match pair {
            [one, next] => next.start - one.start <= one.length + one.length / 2 + ROUNDING,
            _ => true,
        });
        let is_heard = match (sound.first(), sound.last()) {
            (Some(first), Some(last)) => {
                near(first.start, zero) && first.start >= zero - ROUNDING && near(last.end(), end)
            }
            _ => !has_sound,
        };
        near(first.start, zero)
            && first.start >= zero - ROUNDING
            && last.start + ROUNDING <= end
            && last.end() + ROUNDING + last.length / 4 >= end
            && near(last.end(), end)
            && is_whole
            && is_heard
    }
}

fn micros(length: u64) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

fn near(found: i64, wanted: i64) -> bool {
    found.abs_diff(wanted) <= TOLERANCE * 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of packets of 40 ms at these times of the picture, and of 20 ms of sound.
    fn copied(frames: &[i64], sound: &[i64]) -> Copied {
        let mut list =
            String::from("#software: Lavf59.27.100\n#tb 0: 1/1000\n#media_type 0: video\n#tb 1: 1/50\n");
        for frame in frames {
            list.push_str(&format!("0, {frame}, {frame}, 40, 33193, 0xd3a9a9b5, F=0x0\n"));
        }
        for heard in sound {
            list.push_str(&format!("1, {heard}, {heard}, 1, 100, 0x52a0a8c5\n"));
        }
        Copied::read(&list).unwrap()
    }

    #[test]
    fn lists_of_packets_are_read() {
        let packet = |start, length| Packet { start, length };
        let found = copied(&[40, 0], &[1]);
        assert_eq!(
            found.streams,
            [vec![packet(0, 40_000), packet(40_000, 40_000)], vec![packet(20_000, 20_000)]]
        );
        assert_eq!(Copied::read(""), Some(Copied::default()));
        assert!(!Copied::default().is_film(1, false, true) && !Copied::default().is_sound(1));
        for wrong in ["#tb 0: 1/0\n0, 0, 0, 512, 1, 0x0\n", "0, 0, 0, 512, 1, 0x0\n", "#tb 7: 1/2\n"] {
            assert_eq!(Copied::read(wrong), None, "{wrong}");
        }
        let far = format!("#tb 0: {}/1\n0, 0, {}, 1, 1, 0x0\n", i32::MAX, i64::MAX - 1);
        assert_eq!(Copied::read(&far), None);
    }

    #[test]
    fn a_film_holds_all_frames_and_its_sound() {
        let sound: Vec<i64> = (0..10).collect();
        let whole = [0, 80, 40, 120, 160];
        assert!(copied(&whole, &sound).is_film(200_000, true, true));
        assert!(copied(&whole, &[]).is_film(200_000, false, true));
        assert!(!copied(&whole, &[]).is_film(200_000, true, true), "no sound");
        assert!(!copied(&whole, &sound[..7]).is_film(200_000, true, true), "the sound ends early");
        assert!(!copied(&whole, &sound[3..]).is_film(200_000, true, true), "the sound begins late");
        assert!(!copied(&[0, 40, 80, 160], &sound).is_film(200_000, true, true), "a hole");
        assert!(!copied(&[0, 40, 80, 120], &sound).is_film(200_000, true, true), "the last frame is missing");
        assert!(
            !copied(&[0, 40, 80, 120, 160, 200], &sound).is_film(200_000, true, true),
            "a frame too many"
        );
        assert!(!copied(&[-40, 0, 40, 80, 120, 160], &sound).is_film(200_000, true, true), "hidden footage");
        let shifted: Vec<i64> = whole.iter().map(|frame| frame - 10).collect();
        assert!(copied(&shifted, &sound).is_film(200_000, true, false));
    }
}
