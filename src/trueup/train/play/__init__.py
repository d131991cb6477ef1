"""Running trained policies: assessment, measurement, films; policies trained elsewhere too."""
